"""Checks of model providers: what goes over the wire, and what a failure means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from proctor.contracts import CallRecord, Retry, current_call
from proctor.model import GenerateConfig
from proctor_testkit._model_checks import FakeServer, ModelChecks, leaves
from proctor_testkit._suite import check

__all__ = ["WireChecks"]

ONE_REQUEST = "a provider sends exactly one, repeating is the core's, which counts requests and keeps the limits"
NO_RECORD = "no raw call was handed over: record_call(request, response), where request is a dict, goes to the log"


class WireChecks(ModelChecks):
    """One request each, whatever becomes of it."""

    @check("model.one_request", needs="server")
    async def test_a_call_is_exactly_one_request(self, server: FakeServer) -> None:
        async with self.made(server) as model:
            await self.ask(model.api)

        assert len(server.requests) == 1, f"{len(server.requests)} requests for one call: {ONE_REQUEST}"

    @check("model.raw_call", needs="server")
    async def test_it_hands_over_the_raw_call_without_its_credential(self, server: FakeServer) -> None:
        record = CallRecord()
        token = current_call.set(record)

        async with self.made(server) as model:
            await self.ask(model.api)
        current_call.reset(token)

        assert isinstance(record.request, dict), NO_RECORD
        assert record.response is not None, NO_RECORD
        self.keeps_secret(f"{record.request} {record.response} {record.headers}", "the raw call (it goes to the log)")

    @check("model.no_retry", needs="server")
    @pytest.mark.parametrize(
        ("status", "kind"), [(401, "permanent"), (400, "permanent"), (429, "rate_limit"), (500, "transient")]
    )
    async def test_a_failure_is_one_request_and_is_classified(self, server: FakeServer, status: int, kind: str) -> None:
        server.fail(status)

        async with self.made(server) as model:
            with pytest.raises(Exception) as raised:
                await self.ask(model.api)
            retry = model.api.classify(raised.value)

        assert len(server.requests) == 1, f"{len(server.requests)} requests for one call: {ONE_REQUEST}"
        assert retry.kind == kind, (
            f"status {status} means `{kind}`, but classify({raised.value!r}) says `{retry.kind}`: the core waits or "
            "gives up by it"
        )
        self.keeps_secret(f"{raised.value!r} {raised.value}", "the error of a refused call")

    @check("model.retry_after", needs="server")
    async def test_it_reads_how_long_to_wait(self, server: FakeServer) -> None:
        server.fail(429, headers={"retry-after": "7"})

        async with self.made(server) as model:
            with pytest.raises(Exception) as raised:
                await self.ask(model.api)
            retry = model.api.classify(raised.value)

        assert retry == Retry("rate_limit", after=7.0), (
            f"the service answered 429 with `retry-after: 7`, but classify() gives {retry}: the core waits that long"
        )

    @check("model.retry_after_date", needs="server retry_after_date")
    async def test_it_reads_until_when_to_wait(self, server: FakeServer) -> None:
        until = datetime.now(UTC) + timedelta(seconds=100)
        server.fail(429, headers={"retry-after": format_datetime(until, usegmt=True)})

        assert 60 < (await self._asked_wait(server) or 0.0) <= 100

    @check("model.retry_after_ms", needs="server retry_after_ms")
    async def test_it_reads_how_many_milliseconds_to_wait(self, server: FakeServer) -> None:
        server.fail(429, headers={"retry-after-ms": "1500"})

        wait = await self._asked_wait(server)
        assert wait == 1.5, f"the service answered 429 with `retry-after-ms: 1500`, but classify() has after={wait}"

    @check("model.no_wait", needs="server")
    async def test_it_makes_up_no_wait(self, server: FakeServer) -> None:
        server.fail(429)

        wait = await self._asked_wait(server)
        assert wait is None, f"the service named no wait, but classify() has after={wait}: the core has its own pause"

    async def _asked_wait(self, server: FakeServer) -> float | None:
        async with self.made(server) as model:
            with pytest.raises(Exception) as raised:
                await self.ask(model.api)
            return model.api.classify(raised.value).after

    @check("model.raw_failure", needs="server")
    async def test_it_hands_over_the_raw_call_of_a_failure(self, server: FakeServer) -> None:
        server.fail(500)
        record = CallRecord()
        token = current_call.set(record)

        async with self.made(server) as model:
            with pytest.raises(Exception):  # noqa: B017 - the provider's own
                await self.ask(model.api)
        current_call.reset(token)

        assert isinstance(record.request, dict), f"{NO_RECORD}, of a call that failed, too"
        self.keeps_secret(f"{record.request} {record.response} {record.headers}", "the raw call (it goes to the log)")

    @check("model.settings", level="should", needs="server")
    async def test_settings_reach_the_service(self, server: FakeServer) -> None:
        async with self.made(server) as model:
            await self.ask(model.api, GenerateConfig(temperature=0.25))

        assert 0.25 in set(leaves(self.body(server, 0))), (
            "temperature=0.25 of the GenerateConfig is nowhere in the request: a setting that is dropped in silence "
            "gives results that are not what they say"
        )

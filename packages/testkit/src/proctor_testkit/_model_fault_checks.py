"""Checks of model providers: a service on a bad day, and many calls at once."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import traceback
from typing import Any

import anyio
import anyio.from_thread
import pytest

from proctor.model import GenerateConfig, get_model
from proctor_testkit._model_checks import FakeServer, ModelChecks
from proctor_testkit._suite import check

__all__ = ["FaultChecks"]

MANY = 40
_PATIENCE = 20.0
"""Seconds that the fake server waits for the calls that must be there at once."""


class FaultChecks(ModelChecks):
    """Connections break, services go silent, and none of it is taken for an answer."""

    @check("model.unreachable", needs="server")
    async def test_nobody_listens(self, server: FakeServer) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            address = server.base_url.replace(server.base_url.split("/")[2], f"127.0.0.1:{unused.getsockname()[1]}")
            model = get_model(self.model, memoize=False, base_url=address, api_key=self.api_key, **self.model_args)
            with pytest.raises(Exception) as raised:
                await self.ask(model.api)
            kind = model.api.classify(raised.value).kind
            await model.api.aclose()

        assert kind == "transient", (
            f"nobody listened, which may be over soon: classify({raised.value!r}) gives `transient`, not `{kind}`"
        )
        self.keeps_secret("".join(traceback.format_exception(raised.value)), "the error of a service out of reach")

    @check("model.not_logged", needs="server")
    async def test_its_credential_is_in_no_log(self, server: FakeServer, caplog: pytest.LogCaptureFixture) -> None:
        server.fail(401)

        with caplog.at_level(logging.INFO):
            async with self.made(server) as model:
                with pytest.raises(Exception):  # noqa: B017 - the provider's own
                    await self.ask(model.api)
                await self.ask(model.api)

        assert not self.api_key or self.api_key not in caplog.text

    @check("model.loops", needs="server", seconds=120.0)
    def test_a_model_serves_one_loop_after_another(self, server: FakeServer, anyio_backend: str) -> None:
        model = get_model(self.model, memoize=False, base_url=server.base_url, api_key=self.api_key, **self.model_args)
        said: list[str] = []

        async def use() -> None:
            said.append((await self.ask(model.api)).completion)
            await model.api.aclose()

        for _ in range(2):
            anyio.run(use, backend=anyio_backend)
        assert len(said) == 2
        assert all(said)

    @check("model.cut_off", needs="server faults")
    async def test_half_an_answer_is_none(self, server: Any) -> None:
        await self._fails(server, server.drop)

    @check("model.reset", needs="server faults")
    async def test_a_connection_that_is_reset_is_a_failure_of_one_request(self, server: Any) -> None:
        await self._fails(server, server.reset)

    @check("model.garbled", needs="server faults")
    @pytest.mark.parametrize("body", [b"", b"<html>Welcome</html>", b"null", b"[]", b'{"id": "x"'])
    async def test_what_is_no_reply_is_not_taken_for_one(self, server: Any, body: bytes) -> None:
        await self._fails(server, lambda: server.send(200, body))

    async def _fails(self, server: Any, fault: Any) -> None:
        fault()
        async with self.made(server) as model:
            with pytest.raises(Exception) as raised:  # what broke off is an exception, not an output
                await self.ask(model.api)
            retry = model.api.classify(raised.value)
            assert len(server.requests) == 1
            assert (await self.ask(model.api)).completion, "the next call works"

        assert retry.kind == "transient", (
            f"an answer that broke off is worth another request: `transient`, but classify({raised.value!r}) "
            f"says `{retry.kind}`"
        )

    @check("model.timeout", needs="server faults")
    async def test_a_silent_service_is_given_up_in_time(self, server: Any) -> None:
        async with self.made(server) as model:
            await self.ask(model.api)  # so that the connection stands when the clock starts
            server.stall()
            with pytest.raises(TimeoutError):
                await model.generate("?", config=GenerateConfig(attempt_timeout=0.5, max_retries=0))
            assert (await self.ask(model.api)).completion, "the next call works"

        assert len(server.requests) == 3

    @check("model.cancel_closes", needs="server faults")
    async def test_a_cancelled_call_lets_go_of_the_service(self, server: Any) -> None:
        server.stall()

        async with self.made(server) as model:
            async with anyio.create_task_group() as group:
                group.start_soon(self.ask, model.api)
                assert await anyio.to_thread.run_sync(server.wait)
                group.cancel_scope.cancel()
            assert await anyio.to_thread.run_sync(server.wait_idle, _PATIENCE), "nobody waits for what nobody wants"
            assert (await self.ask(model.api)).completion, "the next call works"

    @check("model.pool", needs="server faults")
    async def test_only_the_gate_limits_how_many_calls_there_are_at_once(self, server: Any) -> None:
        usual = server.answer("Hello.")
        together = _Together()

        async def held(body: Any) -> Any:
            await together.meet()
            return usual

        server.reply(held)
        config = GenerateConfig(max_connections=MANY, max_retries=0)
        async with self.made(server, config) as model, anyio.create_task_group() as group:
            for _ in range(MANY):
                group.start_soon(model.generate, "?")

        assert server.peak == MANY, f"of {MANY} calls at once only {server.peak} reached the service: see its pool"

    @check("model.keeps_connections", level="should", needs="server faults")
    async def test_calls_one_after_another_share_a_connection(self, server: Any) -> None:
        async with self.made(server) as model:
            for _ in range(5):
                await self.ask(model.api)

        assert server.connections == 1, f"5 calls one after another took {server.connections} connections, not one"


class _Together:
    """In the fake server's loop: requests wait until all are there."""

    def __init__(self) -> None:
        self._count = 0
        self._lock = threading.Lock()
        self._all: asyncio.Event | None = None

    async def meet(self) -> None:
        with self._lock:
            self._all = self._all or asyncio.Event()
            self._count += 1
            if self._count == MANY:
                self._all.set()
        async with asyncio.timeout(_PATIENCE):
            await self._all.wait()

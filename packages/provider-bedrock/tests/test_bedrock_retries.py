"""What each failure of Bedrock means, and how often a request is sent."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from proctor.contracts import Retry
from proctor.model import AttemptTimeout, GenerateConfig, Model, Pacing, get_model
from proctor_testkit import FakeBedrock

pytestmark = pytest.mark.anyio

Fail = Callable[[FakeBedrock], None]


def model_behind(server: FakeBedrock, **args: Any) -> Model:
    """A model that waits for nothing."""

    async def sleep(seconds: float) -> None:
        pass

    made = get_model(
        "bedrock/us.amazon.nova-lite-v1:0", base_url=server.base_url, api_key="key-1f2e3d4c", memoize=False, **args
    )
    made.pacing = Pacing(sleep=sleep, random=lambda: 0.0)
    return made


@pytest.fixture(params=[False, True], ids=["converse", "stream"])
async def model(server: FakeBedrock, request: Any) -> AsyncIterator[Model]:
    made = model_behind(server, stream=request.param)
    yield made
    await made.api.aclose()


async def test_refused_for_ever_with_three_retries_is_four_requests(model: Model, server: FakeBedrock) -> None:
    server.fail(429)
    server.always()

    with pytest.raises(Exception, match="429 ThrottlingException: Too many requests") as raised:
        await model.generate("?", config=GenerateConfig(max_retries=3))

    assert len(server.requests) == 4
    assert model.retries == {"rate_limit": 3}
    assert "gave up after 4 attempts" in raised.value.__notes__[0]


def failing(status: int, **fields: Any) -> Fail:
    return lambda server: server.fail(status, **fields)


def sending(body: bytes, status: int = 200) -> Fail:
    return lambda server: server.send(status, body)


FAILURES: list[tuple[str, Fail, str]] = [
    ("throttled", failing(429), "rate_limit"),
    ("throttled by another name", failing(400, code="ThrottlingException"), "rate_limit"),
    ("too many requests", failing(429, code="TooManyRequestsException"), "rate_limit"),
    ("limit exceeded", failing(400, code="RequestLimitExceeded"), "rate_limit"),
    ("tokens of the day", failing(429, message="Too many tokens per day, please wait."), "permanent"),
    ("the account's quota", failing(400, code="ServiceQuotaExceededException"), "permanent"),
    ("unavailable", failing(503), "transient"),
    ("unavailable for load", failing(503, message="Too many connections, please wait."), "rate_limit"),
    ("server error", failing(500), "transient"),
    ("gateway", sending(b"<html>Bad gateway</html>", 502), "transient"),
    ("model timeout", failing(408), "transient"),
    ("model error", failing(424), "transient"),
    ("model not ready", failing(429, code="ModelNotReadyException"), "transient"),
    ("validation", failing(400), "permanent"),
    ("access denied", failing(403), "permanent"),
    ("expired, and no others", failing(403, code="ExpiredTokenException"), "permanent"),
    ("unknown model", failing(404), "permanent"),
    ("half a reply", lambda server: server.drop(), "transient"),
    ("reset", lambda server: server.reset(), "transient"),
    ("nothing in a success", sending(b"{}"), "transient"),
    ("no JSON in a success", sending(b"<html>"), "transient"),
]
IN_STREAMS: list[tuple[str, Fail, str]] = [
    ("throttled", lambda server: server.fail_in_stream("throttlingException"), "rate_limit"),
    ("server error", lambda server: server.fail_in_stream("internalServerException"), "transient"),
    ("model error", lambda server: server.fail_in_stream("modelStreamErrorException"), "transient"),
    ("unavailable", lambda server: server.fail_in_stream("serviceUnavailableException"), "transient"),
    ("validation", lambda server: server.fail_in_stream("validationException"), "permanent"),
    ("at once", lambda server: server.fail_in_stream("throttlingException", after=0), "rate_limit"),
    ("wrong checksum", lambda server: server.corrupt(), "transient"),
    ("half a stream", lambda server: server.break_off(3), "transient"),
    ("no message of it", lambda server: server.break_off(0), "transient"),
]


async def check(model: Model, server: FakeBedrock, fail: Fail, kind: str) -> None:
    fail(server)
    server.always()

    with pytest.raises(Exception) as raised:
        await model.generate("?", config=GenerateConfig(max_retries=2))

    assert model.api.classify(raised.value).kind == kind, repr(raised.value)
    assert len(server.requests) == (1 if kind == "permanent" else 3)


@pytest.mark.parametrize(("fail", "kind"), [pytest.param(fail, kind, id=name) for name, fail, kind in FAILURES])
async def test_what_is_transient_is_sent_until_the_retries_are_used_up_and_the_rest_once(
    model: Model, server: FakeBedrock, fail: Fail, kind: str
) -> None:
    await check(model, server, fail, kind)


@pytest.mark.parametrize(("fail", "kind"), [pytest.param(fail, kind, id=name) for name, fail, kind in IN_STREAMS])
async def test_an_error_inside_of_a_successful_stream_is_one(server: FakeBedrock, fail: Fail, kind: str) -> None:
    model = model_behind(server, stream=True)

    await check(model, server, fail, kind)

    await model.api.aclose()


async def test_a_stream_that_ends_without_its_usage_is_a_reply(server: FakeBedrock, api: Any, ask: Any) -> None:
    server.say("Blue.")
    whole = 5  # messageStart, contentBlockDelta, contentBlockStop, messageStop, metadata
    server.fail_in_stream("internalServerException", after=whole)

    output = await ask(api(server, stream=True))

    assert output.completion == "Blue."


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("0.5", 0.5)])
async def test_a_hint_in_seconds_is_read(server: FakeBedrock, api: Any, ask: Any, header: str, seconds: float) -> None:
    assert await hinted(server, api(server), ask, header) == Retry("rate_limit", seconds)


async def test_a_hint_that_is_a_date_is_read(server: FakeBedrock, api: Any, ask: Any) -> None:
    retry = await hinted(server, api(server), ask, formatdate(time.time() + 1000, usegmt=True))

    assert retry.after is not None and 0 < retry.after <= 1000


async def hinted(server: FakeBedrock, made: Any, ask: Any, header: str) -> Retry:
    """What a refusal with a hint means."""
    server.fail(429, headers={"Retry-After": header})
    with pytest.raises(Exception, match="ThrottlingException") as raised:
        await ask(made)
    retry: Retry = made.classify(raised.value)
    return retry


async def test_a_service_that_keeps_silent_is_asked_again(model: Model, server: FakeBedrock) -> None:
    await model.generate("?")  # so that the connection stands when the clock starts
    server.stall()

    assert (await model.generate("?", config=GenerateConfig(attempt_timeout=0.3))).completion == "The answer is 4."

    server.stall()
    server.always()
    with pytest.raises(AttemptTimeout):
        await model.generate("?", config=GenerateConfig(attempt_timeout=0.05, max_retries=2))
    assert model.retries == {"transient": 1 + 2}


async def test_the_read_timeout_of_the_sdk_is_a_failed_attempt(server: FakeBedrock, api: Any, ask: Any) -> None:
    server.stall()
    made = api(server, read_timeout=0.05)

    with pytest.raises(ConnectionError, match="ReadTimeout") as raised:
        await ask(made)

    assert made.classify(raised.value) == Retry("transient")


async def test_a_host_where_nobody_listens_is_a_failed_attempt(api: Any, ask: Any, server: FakeBedrock) -> None:
    with FakeBedrock() as gone:
        made = api(gone)

    with pytest.raises(ConnectionError, match="Could not connect") as raised:
        await ask(made)

    assert made.classify(raised.value).kind == "transient"


async def test_credentials_that_were_renewed_in_their_file_are_used(
    server: FakeBedrock, api: Any, ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credentials"

    def write(name: str) -> None:
        file.write_text(f"[default]\naws_access_key_id={name}\naws_secret_access_key=s\naws_session_token=t-{name}\n")

    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    write("AKIAOLD")
    made = api(server, api_key=None)
    server.fail(403, code="ExpiredTokenException", message="The security token is expired: t-AKIAOLD")
    write("AKIANEW")

    with pytest.raises(Exception, match=r"ExpiredTokenException: .* \[key\]") as raised:
        await ask(made)

    assert made.classify(raised.value) == Retry("transient")
    await ask(made)
    assert ["AKIAOLD" in request.headers["authorization"] for request in server.requests] == [True, False]
    assert "AKIANEW" in server.requests[1].headers["authorization"]


async def test_a_refused_signature_repeats_no_token(
    server: FakeBedrock, api: Any, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-0123456789")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token-0123456789")
    said = "The signature is wrong.\n\nThe Canonical String should have been\nx-amz-security-token:token-0123456789"
    server.fail(403, code="InvalidSignatureException", message=said)

    with pytest.raises(Exception, match="InvalidSignatureException: The signature is wrong") as raised:
        await ask(api(server, api_key=None))

    assert "token-" not in str(raised.value)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Input is too long for requested model.", "model_length"),
        ("The model returned the following errors: prompt is too long: 210000 tokens > 200000 maximum", "model_length"),
        ("The request was blocked by our content filters.", "content_filter"),
    ],
)
async def test_a_refused_length_or_content_is_a_reply(
    server: FakeBedrock, api: Any, ask: Any, message: str, reason: str
) -> None:
    server.fail(400, message=message)

    output = await ask(api(server))

    assert output.stop_reason == reason
    assert output.error == message

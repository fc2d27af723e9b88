"""How failures are retried: every way to say how long to wait, every kind of failure, and how often each is sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.contracts import RateLimits, Retry
from proctor.model import AttemptTimeout, GenerateConfig, Model, Pacing, get_model
from proctor_provider_openai._errors import rate_limits, refusal, retry_after
from proctor_testkit import FakeOpenAI

NOW = 1_764_417_600.0  # 2025-11-29 12:00:00 UTC
RESET = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-remaining-tokens": "10"}


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture(params=["openai/gpt-4o-mini", "openai/o3", "together/llama", "openai-api/acme/llama", "azureai/gpt-4o"])
async def each_model(request: Any, server: FakeOpenAI, slept: list[float]) -> AsyncIterator[Model]:
    """A model of each kind of endpoint."""
    made = model_behind(server, slept, request.param)
    yield made
    await made.api.aclose()


@pytest.fixture
async def model(server: FakeOpenAI, slept: list[float]) -> AsyncIterator[Model]:
    """A model that notes its waits and waits for none."""
    made = model_behind(server, slept, "openai/gpt-4o-mini")
    yield made
    await made.api.aclose()


def model_behind(server: FakeOpenAI, slept: list[float], name: str) -> Model:
    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    args: dict[str, Any] = {"responses_api": True} if name == "openai/o3" else {}
    made = get_model(name, base_url=server.base_url, api_key="sk-test-1f2e3d4c5b6a", memoize=False, **args)
    made.pacing = Pacing(sleep=sleep, random=lambda: 0.0)
    return made


@pytest.mark.anyio
async def test_refused_for_ever_with_three_retries_is_four_requests(each_model: Model, server: FakeOpenAI) -> None:
    server.fail(429)
    server.always()

    with pytest.raises(Exception, match="429 rate_limit_exceeded: Rate limit reached") as raised:
        await each_model.generate("?", config=GenerateConfig(max_retries=3))

    assert len(server.requests) == 4
    assert each_model.retries == {"rate_limit": 3}
    assert "gave up after 4 attempts" in raised.value.__notes__[0]
    assert each_model.last_error is not None and "Rate limit reached" in each_model.last_error


def failing(status: int, **fields: Any) -> Callable[[FakeOpenAI], None]:
    return lambda server: server.fail(status, **fields)


def sending(body: Any, status: int = 200) -> Callable[[FakeOpenAI], None]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda server: server.send(status, raw)


QUOTA = {"code": "insufficient_quota", "kind": "insufficient_quota", "message": "You exceeded your current quota."}

FAILURES: list[tuple[str, Callable[[FakeOpenAI], None], str]] = [
    ("bad request", failing(400), "permanent"),
    ("wrong key", failing(401), "permanent"),
    ("no credit", failing(402), "permanent"),
    ("forbidden", failing(403), "permanent"),
    ("unknown model", failing(404), "permanent"),
    ("request timeout", failing(408), "transient"),
    ("conflict", failing(409), "transient"),
    ("too large", failing(413, message="Request entity too large"), "permanent"),
    ("can't be processed", failing(422), "permanent"),
    ("rate limit", failing(429), "rate_limit"),
    ("quota used up", failing(429, **QUOTA), "permanent"),
    ("not to be retried", failing(429, headers={"x-should-retry": "false"}), "permanent"),
    ("to be retried", failing(400, headers={"x-should-retry": "true"}), "transient"),
    ("server error", failing(500), "transient"),
    ("server error, not to be retried", failing(500, headers={"x-should-retry": "false"}), "permanent"),
    ("bad gateway", sending(b"<html>Bad gateway</html>", 502), "transient"),
    ("unavailable", failing(503), "transient"),
    ("unavailable for load", failing(503, message="The server is overloaded."), "rate_limit"),
    ("gateway timeout", failing(504), "transient"),
    ("overloaded", failing(529), "rate_limit"),
    ("status in a success", sending({"error": {"message": "slow", "code": 429}}), "rate_limit"),
    ("status as text in a success", sending({"error": {"message": "broken", "code": "502"}}), "transient"),
    ("code in a success", sending({"error": {"message": "slow", "code": "rate_limit_exceeded"}}), "rate_limit"),
    ("type in a success", sending({"error": {"message": "x", "type": "overloaded_error"}}), "rate_limit"),
    ("words in a success", sending({"error": {"message": "Too many requests"}}), "rate_limit"),
    ("quota in a success", sending({"error": QUOTA | {"type": "insufficient_quota"}}), "permanent"),
    ("wrong key in a success", sending({"error": {"message": "x", "code": "invalid_api_key"}}), "permanent"),
    ("error in a success", sending({"error": {"message": "something broke"}}), "transient"),
    ("text in a success", sending({"error": "something broke"}), "transient"),
    ("no JSON in a success", sending(b'{"choices": [{"mess'), "transient"),
    ("nothing in a success", sending(b""), "transient"),
    ("no JSON in a creation", sending(b"<html>", 201), "transient"),
    ("no choices", sending({"choices": []}), "transient"),
    ("half a body", lambda server: server.drop(), "transient"),
    ("reset connection", lambda server: server.reset(), "transient"),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("fail", "kind"), [pytest.param(fail, kind, id=name) for name, fail, kind in FAILURES])
async def test_what_is_transient_is_sent_until_the_retries_are_used_up_and_the_rest_once(
    model: Model, server: FakeOpenAI, fail: Callable[[FakeOpenAI], None], kind: str
) -> None:
    fail(server)
    server.always()

    with pytest.raises(Exception) as raised:
        await model.generate("?", config=GenerateConfig(max_retries=2))

    assert model.api.classify(raised.value).kind == kind
    assert len(server.requests) == (1 if kind == "permanent" else 3)
    assert model.retries == ({} if kind == "permanent" else {kind: 2})


@pytest.mark.anyio
async def test_a_request_without_an_answer_is_sent_again(model: Model, server: FakeOpenAI) -> None:
    await model.generate("?")  # so that the connection stands when the clock starts
    server.stall()

    assert (await model.generate("?", config=GenerateConfig(attempt_timeout=0.3))).completion == "The answer is 4."

    server.stall()
    server.always()
    with pytest.raises(AttemptTimeout):
        await model.generate("?", config=GenerateConfig(attempt_timeout=0.05, max_retries=2))
    assert model.retries == {"transient": 1 + 2}


@pytest.mark.anyio
async def test_a_host_where_nobody_listens_is_tried_again_and_says_so(slept: list[float]) -> None:
    model = get_model("openai/m", base_url="http://127.0.0.1:9/v1", api_key="k-12345678", memoize=False)
    model.pacing = Pacing(sleep=lambda seconds: noted(slept, seconds))

    with pytest.raises(ConnectionError):
        await model.generate("?", config=GenerateConfig(max_retries=2))
    await model.api.aclose()

    assert len(slept) == 2
    assert model.last_error is not None
    assert model.last_error.startswith("ConnectionFailed: nothing listens at http://127.0.0.1:9 ")


async def noted(slept: list[float], seconds: float) -> None:
    slept.append(seconds)


WAITS: list[tuple[dict[str, str], str, float | None]] = [
    ({"retry-after": "20"}, "", 20.0),
    ({"retry-after": " 20 "}, "", 20.0),
    ({"retry-after": "0"}, "", 0.0),
    ({"retry-after": "0.5"}, "", 0.5),
    ({"retry-after": "1e1"}, "", 10.0),
    ({"retry-after": "1.5s"}, "", 1.5),
    ({"retry-after": "6m0s"}, "", 360.0),
    ({"retry-after": "Sat, 29 Nov 2025 12:00:30 GMT"}, "", 30.0),
    ({"retry-after": "Sat, 29 Nov 2025 12:00:30 -0000"}, "", 30.0),
    ({"retry-after": "Sat, 29 Nov 2025 13:00:30 +0100"}, "", 30.0),
    ({"retry-after": "Saturday, 29-Nov-25 12:00:30 GMT"}, "", 30.0),
    ({"retry-after": "Sat Nov 29 12:00:30 2025"}, "", 30.0),
    ({"retry-after": "Sat, 29 Nov 2025 11:00:00 GMT"}, "", 0.0),
    ({"retry-after": "Sat, 99 Nov 2025 11:00:00 GMT"}, "", None),
    ({"retry-after": "Sat, 29 Nov 99999 11:00:00 GMT"}, "", None),
    ({"retry-after": "soon"}, "", None),
    ({"retry-after": ""}, "", None),
    ({"retry-after": "-1"}, "", None),
    ({"retry-after": "inf"}, "", None),
    ({"retry-after-ms": "1500"}, "", 1.5),
    ({"retry-after-ms": "12.5"}, "", 0.0125),
    ({"x-ms-retry-after-ms": "1500"}, "", 1.5),
    ({"retry-after-ms": "soon", "retry-after": "9"}, "", 9.0),
    ({"retry-after-ms": "250", "retry-after": "9"}, "", 0.25),
    ({"retry-after": "9"}, "Please try again in 1.5s.", 9.0),
    ({"retry-after": "soon"}, "Please try again in 1.5s.", 1.5),
    ({}, "Rate limit reached for m on tokens per min. Limit: 90000. Please try again in 1.5s. Visit ...", 1.5),
    ({}, "Please try again in 6m0s.", 360.0),
    ({}, "Please try again in 12ms.", 0.012),
    ({}, "please wait 3 seconds", 3.0),
    ({}, "Retry after 1 minute 30 seconds", 90.0),
    ({}, "try again in a while", None),
    ({**RESET, "x-ratelimit-reset-requests": "6m0s"}, "", 360.0),
    ({**RESET, "x-ratelimit-reset-requests": "12ms"}, "", 0.012),
    ({**RESET, "x-ratelimit-reset-requests": "1h2m3.5s"}, "", 3723.5),
    ({**RESET, "x-ratelimit-reset-requests": "60"}, "", 60.0),
    ({**RESET, "x-ratelimit-reset-tokens": "60"}, "", None),
    ({**RESET, "x-ratelimit-reset-requests": "60", "retry-after": "2"}, "", 2.0),
    ({**RESET, "x-ratelimit-reset-requests": "60"}, "Please try again in 1.5s.", 1.5),
    ({**RESET, "x-ratelimit-reset-requests": str(int(NOW) + 45)}, "", 45.0),
    ({**RESET, "x-ratelimit-reset-requests": str(int(NOW + 45) * 1000)}, "", 45.0),
    (
        {
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "1s",
            "x-ratelimit-remaining-tokens": "0",
            "x-ratelimit-reset-tokens": "8s",
        },
        "",
        8.0,
    ),
    ({}, "", None),
]


@pytest.mark.parametrize(("headers", "message", "seconds"), WAITS)
def test_every_way_to_say_how_long_to_wait(headers: dict[str, str], message: str, seconds: float | None) -> None:
    found = retry_after(headers, message, now=NOW)

    assert found == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"retry-after": "7"}, None, 7.0),
        ({"Retry-After-Ms": "1500"}, None, 1.5),
        ({"Retry-After": "Fri, 01 Jan 2100 00:00:00 GMT"}, None, 300.0),
        ({}, "Please try again in 1.5s.", 1.5),
        ({}, None, 0.0),
    ],
)
async def test_the_wait_is_what_was_asked_for_up_to_five_minutes(
    model: Model, server: FakeOpenAI, slept: list[float], headers: dict[str, str], message: str | None, seconds: float
) -> None:
    server.fail(429, headers=headers, message=message)

    await model.generate("?")

    assert slept == [seconds]


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["openai/gpt-4o-mini", "openai/o3"])
async def test_an_error_inside_a_success_keeps_the_wait_of_its_headers(
    server: FakeOpenAI, slept: list[float], name: str
) -> None:
    model = model_behind(server, slept, name)
    error = {"error": {"message": "slow", "code": "rate_limit_exceeded"}}
    server.send(200, json.dumps(error).encode(), {"retry-after": "7"})

    await model.generate("?")
    await model.api.aclose()

    assert slept == [7.0]
    assert model.retries == {"rate_limit": 1}


@given(st.dictionaries(st.sampled_from(["code", "type", "message", "status"]), st.integers() | st.text(), max_size=4))
def test_any_error_inside_a_success_is_a_verdict(error: dict[str, Any]) -> None:
    from proctor_provider_openai._errors import classify

    verdict = classify(refusal(200, {}, {"error": error}))

    assert isinstance(verdict, Retry)


@pytest.mark.parametrize(
    ("headers", "limits"),
    [
        (
            {
                "x-ratelimit-limit-requests": "500",
                "x-ratelimit-remaining-requests": "499",
                "x-ratelimit-reset-requests": "120ms",
                "x-ratelimit-limit-tokens": "200000",
                "x-ratelimit-remaining-tokens": "199976",
                "x-ratelimit-reset-tokens": "7ms",
            },
            RateLimits(500, 499, 0.12, 200000, 199976, 0.007),
        ),
        ({"x-ratelimit-remaining-requests": "0"}, RateLimits(requests_remaining=0)),
        ({"x-ratelimit-reset-requests": "6m0s"}, RateLimits(requests_reset=360.0)),
        ({"x-ratelimit-reset-tokens": "2m59.56s"}, RateLimits(tokens_reset=179.56)),
        ({"x-ratelimit-reset-tokens": "60"}, RateLimits(tokens_reset=60.0)),
        ({"x-ratelimit-reset-tokens": str(int(NOW) + 5)}, RateLimits(tokens_reset=5.0)),
        ({"x-ratelimit-reset-tokens": str(int(NOW) - 5)}, RateLimits(tokens_reset=0.0)),
        ({"x-ratelimit-limit-tokens": "1e6"}, RateLimits(tokens_limit=1_000_000)),
        ({"x-ratelimit-limit-tokens": "150000.0"}, RateLimits(tokens_limit=150_000)),
        ({"x-ratelimit-limit-requests": "many", "x-ratelimit-limit-tokens": "3"}, RateLimits(tokens_limit=3)),
        ({"x-ratelimit-remaining-tokens": "-1"}, None),
        ({"x-ratelimit-limit-tokens": "nan"}, None),
        ({"x-ratelimit-reset-tokens": "soon"}, None),
        ({"content-type": "application/json"}, None),
        ({}, None),
    ],
)
def test_quotas_in_headers(headers: dict[str, str], limits: RateLimits | None) -> None:
    assert rate_limits(headers, now=NOW) == limits


@pytest.mark.anyio
async def test_the_latest_quota_is_read_whatever_the_case_of_its_headers(model: Model, server: FakeOpenAI) -> None:
    assert model.rate_limits() is None
    server.headers = {"X-RateLimit-Limit-Requests": "500", "X-Ratelimit-Reset-Requests": "6m0s"}

    await model.generate("?")

    assert model.rate_limits() == RateLimits(requests_limit=500, requests_reset=360.0)

"""Failures: what is an error, what is a reply, and what each means for a retry."""

from __future__ import annotations

import json
from typing import Any

import anyio.to_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.contracts import CallRecord, RateLimits, Retry, current_call
from proctor_provider_openai._errors import (
    APIError,
    ConnectionFailed,
    MalformedResponse,
    duration,
    rate_limits,
    refusal,
    retry_after,
)
from proctor_testkit import FakeOpenAI

EPOCH = 1_764_417_600.0  # 2025-11-29 12:00:00 UTC


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "fields", "retry"),
    [
        (400, {}, Retry("permanent")),
        (401, {}, Retry("permanent")),
        (403, {}, Retry("permanent")),
        (404, {}, Retry("permanent")),
        (422, {}, Retry("permanent")),
        (429, {"code": "insufficient_quota", "kind": "insufficient_quota"}, Retry("permanent")),
        (402, {"message": "Payment required"}, Retry("permanent")),
        (429, {}, Retry("rate_limit")),
        (429, {"headers": {"retry-after": "3"}}, Retry("rate_limit", 3.0)),
        (429, {"message": "Please try again in 1.5s."}, Retry("rate_limit", 1.5)),
        (529, {"message": "Overloaded"}, Retry("rate_limit")),
        (503, {"message": "The model is overloaded."}, Retry("rate_limit")),
        (503, {"message": "Bad upstream."}, Retry("transient")),
        (500, {"headers": {"retry-after": "2"}}, Retry("transient", 2.0)),
        (500, {"headers": {"x-should-retry": "false"}}, Retry("permanent")),
        (409, {}, Retry("transient")),
        (408, {}, Retry("transient")),
        (504, {}, Retry("transient")),
    ],
)
async def test_each_refusal_is_one_request_and_one_decision(
    server: FakeOpenAI, api: Any, ask: Any, status: int, fields: dict[str, Any], retry: Retry
) -> None:
    server.fail(status, **fields)
    model = api(server)

    with pytest.raises(APIError) as raised:
        await ask(model)

    assert model.classify(raised.value) == retry
    assert raised.value.status == status
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"retry-after": "20"}, "", 20.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after": "Sat, 29 Nov 2025 12:00:30 GMT"}, "", 30.0),
        ({"retry-after": "Sat, 29 Nov 2025 11:59:30 GMT"}, "", 0.0),
        ({"retry-after-ms": "250"}, "", 0.25),
        ({"x-ms-retry-after-ms": "250"}, "", 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, "", 0.25),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "-1"}, "", None),
        ({"retry-after": "nan"}, "", None),
        ({}, "Rate limit reached. Please try again in 6m0s.", 360.0),
        ({}, "Please try again in 20ms.", 0.02),
        ({}, "Please retry after 20 seconds.", 20.0),
        ({}, "Please retry in 34.074s", 34.074),
        ({}, "Try again in 2 minutes", 120.0),
        ({}, "Try again in 500 milliseconds", 0.5),
        ({}, "Try again in 1h2m3s", 3723.0),
        ({}, "Try again later.", None),
        ({}, "", None),
    ],
)
def test_the_wait_that_is_asked_for(headers: dict[str, str], message: str, seconds: float | None) -> None:
    found = retry_after(headers, message, now=EPOCH)

    assert found == pytest.approx(seconds) if seconds is not None else found is None


@given(st.text())
def test_any_header_and_message_give_a_wait_or_none(text: str) -> None:
    found = retry_after({"retry-after": text}, text, now=EPOCH)

    assert found is None or found >= 0


@given(st.floats(min_value=0, max_value=1e6, allow_nan=False))
def test_a_bare_number_is_in_seconds(seconds: float) -> None:
    assert duration(str(seconds)) == seconds


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists), max_size=4))
def test_any_body_makes_an_error(body: Any) -> None:
    assert refusal(400, {}, body).status == 400
    assert refusal(400, {}, {"error": body}).status == 400


def test_the_quota_is_read_from_headers() -> None:
    headers = {
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-reset-requests": "120ms",
        "x-ratelimit-limit-tokens": "30000",
        "x-ratelimit-remaining-tokens": "29976",
        "x-ratelimit-reset-tokens": "6m0s",
    }

    assert rate_limits(headers) == RateLimits(500, 499, 0.12, 30000, 29976, 360.0)
    assert rate_limits({"content-type": "application/json"}) is None
    assert rate_limits({"x-ratelimit-remaining-requests": "many"}) is None


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (400, {"code": "context_length_exceeded", "message": "This model's maximum context length is 8192 tokens."}),
        (400, {"code": "", "message": "This model's maximum context length is 4096 tokens. However, you requested 9."}),
        (400, {"code": "", "kind": "exceed_context_size_error", "message": "the request exceeds the context"}),
        (413, {"code": "", "message": "Prompt is too long"}),
    ],
)
async def test_too_long_a_conversation_is_a_reply(
    server: FakeOpenAI, api: Any, ask: Any, status: int, fields: dict[str, Any]
) -> None:
    server.fail(status, **fields)

    output = await ask(api(server))

    assert output.stop_reason == "model_length"
    assert output.error == fields["message"]


@pytest.mark.anyio
async def test_azure_s_content_filter_is_a_reply(server: FakeOpenAI, api: Any, ask: Any) -> None:
    result = {"violence": {"filtered": True, "severity": "high"}}
    error = {
        "message": "The response was filtered.",
        "code": "content_filter",
        "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": result},
    }
    server.send(400, json.dumps({"error": error}).encode())

    output = await ask(api(server))

    assert output.stop_reason == "content_filter"
    assert output.metadata == {"content_filter_result": result}


@pytest.mark.anyio
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>502</html>",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": 4}]}',
    ],
)
async def test_a_success_that_is_no_reply_is_tried_again(server: FakeOpenAI, api: Any, ask: Any, body: bytes) -> None:
    server.send(200, body)
    model = api(server)

    with pytest.raises(MalformedResponse) as raised:
        await ask(model)

    assert model.classify(raised.value) == Retry("transient")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("body", "retry"),
    [
        ({"error": {"message": "Rate limited", "code": 429}}, Retry("rate_limit")),
        ({"error": {"message": "Upstream broke", "code": 502}}, Retry("transient")),
        ({"choices": [{"error": {"message": "Upstream broke", "code": 502}}]}, Retry("transient")),
    ],
)
async def test_an_error_inside_a_success(server: FakeOpenAI, api: Any, ask: Any, body: Any, retry: Retry) -> None:
    server.send(200, json.dumps(body).encode())
    model = api(server)

    with pytest.raises(APIError) as raised:
        await ask(model)

    assert model.classify(raised.value) == retry


@pytest.mark.anyio
async def test_an_error_page_is_an_error_with_its_text(server: FakeOpenAI, api: Any, ask: Any) -> None:
    server.send(502, b"<html>Bad gateway</html>", {"content-type": "text/html"})
    model = api(server)

    with pytest.raises(APIError, match="502: <html>Bad gateway") as raised:
        await ask(model)

    assert model.classify(raised.value) == Retry("transient")


@pytest.mark.anyio
async def test_a_redirect_is_not_followed(server: FakeOpenAI, api: Any, ask: Any) -> None:
    server.send(307, b"", {"location": "http://127.0.0.1:1/elsewhere"})

    with pytest.raises(APIError, match="307: the service redirects to http"):
        await ask(api(server))

    assert len(server.requests) == 1


@pytest.mark.anyio
async def test_a_connection_that_breaks_is_transient(server: FakeOpenAI, api: Any, ask: Any) -> None:
    server.drop()
    model = api(server)

    with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1") as raised:
        await ask(model)

    assert model.classify(raised.value) == Retry("transient")


@pytest.mark.anyio
async def test_nobody_listens(api: Any, ask: Any) -> None:
    model = api(None, base_url="http://127.0.0.1:9/v1")

    with pytest.raises(
        ConnectionFailed, match=r"nothing listens at http://127\.0\.0\.1:9 .*server running\?"
    ) as raised:
        await ask(model)

    assert model.classify(raised.value) == Retry("transient")


@pytest.mark.anyio
async def test_a_call_that_is_never_answered_can_be_cancelled(server: FakeOpenAI, api: Any, ask: Any) -> None:
    server.stall()
    model = api(server)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, model)
        await anyio.to_thread.run_sync(server.wait)
        tasks.cancel_scope.cancel()

    assert (await ask(model)).completion == "The answer is 4."


@pytest.mark.anyio
async def test_a_key_that_the_service_repeats_is_cut_out(server: FakeOpenAI, api: Any, ask: Any) -> None:
    key = "sk-test-1f2e3d4c5b6a"
    server.fail(401, message=f"Incorrect API key provided: {key}.")
    model = api(server)
    record = CallRecord()
    token = current_call.set(record)

    with pytest.raises(APIError, match=r"provided: \[key\]") as raised:
        await ask(model)
    current_call.reset(token)

    assert key not in f"{record.request} {record.response}"
    shown = f"{raised.value} {raised.value!r} {raised.value.message} {model!r} {vars(model)} {model.connection_key()}"
    assert key not in shown.replace(repr(model._headers), "")

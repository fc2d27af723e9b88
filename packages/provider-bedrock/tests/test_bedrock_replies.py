"""What comes back, by Converse and by ConverseStream: the same."""

from __future__ import annotations

import base64
import contextlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proctor.contracts import CallRecord, current_call
from proctor.schema import ContentReasoning, ContentText, ToolInfo
from proctor_provider_bedrock._errors import MalformedResponse
from proctor_provider_bedrock._output import converse_output
from proctor_provider_bedrock._stream import folded
from proctor_testkit import FakeBedrock

pytestmark = pytest.mark.anyio

ADD = ToolInfo(name="add", description="Add.")


@pytest.fixture(params=[False, True], ids=["converse", "stream"])
def reply(request: Any, server: FakeBedrock, api: Any, ask: Any) -> Any:
    """``await reply(text, **said)``: the output of a reply that says so."""

    async def get(text: str | None = None, *, tools: Any = None, **said: Any) -> Any:
        server.say(text, **said)
        return await ask(api(server, "us.anthropic.claude-sonnet-4-5-20250929-v1:0", stream=request.param), tools=tools)

    return get


async def test_text(reply: Any) -> None:
    output = await reply("The sky is blue, mostly.")

    assert output.message.content == "The sky is blue, mostly."
    assert (output.stop_reason, output.response_id) == ("stop", "req-1")


async def test_parallel_calls(reply: Any) -> None:
    output = await reply("Let me see.", calls=[("add", {"x": 1, "y": [2]}), ("add", {})], tools=[ADD])

    first, second = output.message.tool_calls
    assert (first.function, first.arguments) == ("add", {"x": 1, "y": [2]})
    assert second.arguments == {} and first.id != second.id
    assert output.stop_reason == "tool_calls" and output.completion == "Let me see."


async def test_arguments_that_are_no_json_go_back_to_the_model(server: FakeBedrock, api: Any, ask: Any) -> None:
    server.say(calls=[("add", '{"x": 1')])

    output = await ask(api(server, stream=True), tools=[ADD])

    assert "not JSON" in output.message.tool_calls[0].parse_error


async def test_reasoning_is_kept_to_the_byte(reply: Any) -> None:
    opaque = base64.b64encode(bytes(range(256))).decode()

    output = await reply("Blue.", reasoning=" Let me\n\nthink. ", signature="c2ln+/=", redacted=opaque)

    assert output.message.content == [
        ContentReasoning(reasoning=" Let me\n\nthink. ", signature="c2ln+/="),
        ContentReasoning(reasoning=opaque, redacted=True),
        ContentText(text="Blue."),
    ]
    assert output.completion == "Blue."


async def test_signed_reasoning_without_words_is_kept(reply: Any) -> None:
    output = await reply("Blue.", reasoning="", signature="c2ln")

    assert output.message.content[0] == ContentReasoning(reasoning="", signature="c2ln")


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "model_length"),
        ("guardrail_intervened", "content_filter"),
        ("content_filtered", "content_filter"),
        ("malformed_tool_use", "unknown"),
        ("something_new", "unknown"),
    ],
)
async def test_stop_reasons(reply: Any, finish: str, reason: str) -> None:
    output = await reply("Blue.", finish=finish)

    assert output.stop_reason == reason
    told = {"type": finish} if reason in ("unknown", "content_filter") else None
    assert output.choice.stop_details == told


async def test_usage_counts_what_went_through_the_cache(reply: Any) -> None:
    usage = (await reply("Blue.", usage={"input": 5, "output": 7, "cache_read": 100, "cache_write": 30})).usage

    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (5, 7, 142)
    assert (usage.input_tokens_cache_read, usage.input_tokens_cache_write) == (100, 30)


async def test_what_a_guardrail_found_and_what_the_model_adds_are_kept(reply: Any) -> None:
    trace = {"guardrail": {"actionReason": "Guardrail blocked."}}

    output = await reply("No.", finish="guardrail_intervened", trace=trace, fields={"stop_sequence": "END"})

    assert output.metadata == {"trace": trace, "additionalModelResponseFields": {"stop_sequence": "END"}}


async def test_the_model_that_a_router_chose_is_named(reply: Any) -> None:
    chosen = "arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-lite-v1:0"

    assert (await reply("Blue.", trace={"promptRouter": {"invokedModelId": chosen}})).model == chosen


async def test_the_raw_call_is_as_it_went_over_the_wire(reply: Any, server: FakeBedrock) -> None:
    record = CallRecord()
    token = current_call.set(record)

    await reply("Blue.", redacted="AAEC")
    current_call.reset(token)

    assert record.request is not None
    assert {name: value for name, value in record.request.items() if name != "modelId"} == server.requests[0].body
    content = record.response["output"]["message"]["content"]
    assert content == [{"reasoningContent": {"redactedContent": "AAEC"}}, {"text": "Blue."}]
    assert record.headers is not None and record.headers["x-amzn-requestid"] == "req-1"
    assert record.time is not None


def test_citations_come_with_their_text() -> None:
    events = [
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Grass is "}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"citation": {"title": "Botany"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "green."}}},
        {"messageStop": {"stopReason": "end_turn"}},
    ]

    output = converse_output(folded(events), "m", [], None)

    assert output.completion == "Grass is green."
    assert output.message.content[0].internal == {"citations": [{"title": "Botany"}]}  # type: ignore[union-attr]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=4,
)
KEYS = st.sampled_from(["output", "message", "content", "stopReason", "usage", "toolUse", "text", "reasoningContent"])
BODIES = st.recursive(
    JSON, lambda inner: st.dictionaries(KEYS, inner, max_size=4) | st.lists(inner, max_size=2), max_leaves=8
)


@given(st.dictionaries(KEYS, BODIES))
@example({"output": {"message": {"content": {"": None}}}})
def test_whatever_came_it_is_a_reply_or_malformed(body: dict[str, Any]) -> None:
    with contextlib.suppress(MalformedResponse):
        converse_output(body, "m", [], None)

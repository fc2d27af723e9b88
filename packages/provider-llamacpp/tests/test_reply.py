"""Replies, from chunks as llama.cpp streams them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.model import ContentReasoning, ContentText
from proctor.tool import ToolInfo, ToolParam, ToolParams
from proctor_provider_llamacpp._reply import LlamaError, Reply


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"finish_reason": None, "index": 0, "delta": fields}], "object": "chat.completion.chunk"}


def end(reason: str) -> dict[str, Any]:
    return {"choices": [{"finish_reason": reason, "index": 0, "delta": {}}]}


def used(prompt: int, completion: int, cached: int = 0) -> dict[str, Any]:
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return {"choices": [], "usage": usage, "id": "chatcmpl-1"}


def reply(*chunks: dict[str, Any]) -> Reply:
    made = Reply()
    for chunk in chunks:
        made.add(chunk)
    return made


def test_a_text_reply() -> None:
    progress = {**delta(role="assistant", content=None), "prompt_progress": {"total": 36, "processed": 0}}

    got = reply(progress, delta(content="Hel"), delta(content="lo"), end("stop"), used(36, 2, cached=30))

    choice = got.choice("tiny", None)
    assert (choice.message.content, choice.stop_reason, choice.message.model) == ("Hello", "stop", "tiny")
    assert (got.usage.input_tokens, got.usage.input_tokens_cache_read, got.usage.output_tokens) == (6, 30, 2)
    assert got.usage.total_tokens == 38
    assert got.body()["choices"][0]["message"] == {"role": "assistant", "content": "Hello"}


@pytest.mark.parametrize(("limit", "reason"), [(3, "max_tokens"), (4, "model_length"), (None, "model_length")])
def test_a_full_context_is_told_from_a_limit_that_was_asked_for(limit: int | None, reason: str) -> None:
    got = reply(delta(content="a b c"), end("length"), used(10, 3))

    assert got.choice("tiny", limit).stop_reason == reason


def test_a_stream_that_was_cut_has_an_unknown_reason() -> None:
    assert reply(delta(content="a")).choice("tiny", None).stop_reason == "unknown"


def test_a_prompt_that_does_not_fit_is_a_reply() -> None:
    error = {"error": {"code": 400, "message": "exceeds the context", "type": "exceed_context_size_error"}}

    got = reply(error)

    assert got.too_long == "exceeds the context"
    assert got.choice("tiny", None).stop_reason == "model_length"
    assert got.body() == error


def test_any_other_error_is_raised_with_its_kind() -> None:
    with pytest.raises(LlamaError, match="no such field") as raised:
        reply({"error": {"code": 400, "message": "no such field", "type": "invalid_request_error"}})

    assert raised.value.kind == "invalid_request_error"


def test_reasoning_stands_before_the_text() -> None:
    content = (
        reply(delta(reasoning_content="hm"), delta(content="yes"), end("stop")).choice("tiny", None).message.content
    )

    assert content == [ContentReasoning(reasoning="hm"), ContentText(text="yes")]


def test_tool_calls_grow_by_their_index() -> None:
    def part(index: int, id: str | None = None, **function: str) -> dict[str, Any]:
        return delta(tool_calls=[{"index": index, "function": function} | ({"id": id} if id else {})])

    got = reply(
        part(0, id="x", name="add", arguments=""),
        part(0, arguments='{"a":'),
        part(1, id="y", name="now", arguments=""),
        part(0, arguments="1}"),
        end("tool_calls"),
    )

    choice = got.choice("tiny", None)
    calls = choice.message.tool_calls or []
    assert choice.stop_reason == "tool_calls"
    assert [(call.id, call.function, call.arguments) for call in calls] == [("x", "add", {"a": 1}), ("y", "now", {})]
    assert got.body()["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == '{"a":1}'


@pytest.mark.parametrize(("arguments", "said"), [('{"a":', "are not JSON"), ("[1]", "not a JSON object")])
def test_arguments_that_are_no_object_are_a_parse_error(arguments: str, said: str) -> None:
    part = {"index": 0, "id": "x", "function": {"name": "add", "arguments": arguments}}

    [call] = reply(delta(tool_calls=[part]), end("tool_calls")).choice("tiny", None).message.tool_calls or []

    assert call.arguments == {}
    assert said in (call.parse_error or "")


def test_a_bare_value_for_a_tool_of_one_parameter_is_that_parameter() -> None:
    part = {"index": 0, "id": "x", "function": {"name": "bash", "arguments": '"ls"'}}
    bash = ToolInfo(name="bash", description="d", parameters=ToolParams(properties={"command": ToolParam()}))

    [call] = reply(delta(tool_calls=[part]), end("tool_calls")).choice("tiny", None, [bash]).message.tool_calls or []

    assert (call.arguments, call.parse_error) == ({"command": "ls"}, None)


def test_log_probabilities_come_with_their_alternatives() -> None:
    token = {"id": 57, "token": "I", "bytes": [73], "logprob": -2.2}
    chunk = delta(content="I")
    chunk["choices"][0]["logprobs"] = {"content": [{**token, "top_logprobs": [token, {**token, "token": "A"}]}]}

    logprobs = reply(chunk, end("length")).choice("tiny", 1).logprobs

    assert logprobs is not None
    assert (logprobs.content[0].token, logprobs.content[0].logprob, logprobs.content[0].bytes) == ("I", -2.2, [73])
    assert [top.token for top in logprobs.content[0].top_logprobs or []] == ["I", "A"]


@given(st.lists(st.text(min_size=1)))
def test_the_text_is_its_pieces(pieces: list[str]) -> None:
    got = reply(*(delta(content=piece) for piece in pieces), end("stop"))

    assert got.choice("tiny", None).message.content == "".join(pieces)

"""What is sent to llama.cpp."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.contracts import UsageError
from proctor.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ResponseSchema,
)
from proctor.tool import ToolCall, ToolCallError, ToolFunction, ToolInfo, ToolParam, ToolParams
from proctor_provider_llamacpp._request import build_request

HELLO: list[ChatMessage] = [ChatMessageUser(content="Hello")]
ADD = ToolInfo(
    name="add", description="Add.", parameters=ToolParams(properties={"a": ToolParam(type="integer")}, required=["a"])
)
SUBTRACT = ToolInfo(name="subtract", description="Subtract.")


def test_settings_that_were_not_said_are_not_sent() -> None:
    request = build_request(HELLO, [], "auto", GenerateConfig())

    assert request["messages"] == [{"role": "user", "content": "Hello"}]
    assert set(request) == {"messages", "stream", "stream_options", "return_progress", "cache_prompt"}


def test_settings_are_sent_under_their_names_there() -> None:
    config = GenerateConfig(
        max_tokens=5,
        temperature=0.0,
        top_p=0.9,
        top_k=3,
        seed=7,
        stop_seqs=["\n"],
        frequency_penalty=0.1,
        presence_penalty=0.2,
        logit_bias={42: -100},
        top_logprobs=2,
        extra_body={"min_p": 0.1},
    )

    request = build_request(HELLO, [], "auto", config)

    assert {name: request[name] for name in ("max_tokens", "temperature", "top_p", "top_k", "seed", "stop")} == {
        "max_tokens": 5,
        "temperature": 0.0,
        "top_p": 0.9,
        "top_k": 3,
        "seed": 7,
        "stop": ["\n"],
    }
    assert request["logit_bias"] == {"42": -100}
    assert (request["logprobs"], request["top_logprobs"], request["min_p"]) == (True, 2, 0.1)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (GenerateConfig(), True),
        (GenerateConfig(temperature=0.0), True),
        (GenerateConfig(seed=1), False),
        (GenerateConfig(seed=1, cache_prompt="auto"), False),
        (GenerateConfig(seed=1, cache_prompt=True), True),
        (GenerateConfig(cache_prompt=False), False),
    ],
)
def test_a_seed_forgoes_what_was_read_before(config: GenerateConfig, expected: bool) -> None:
    assert build_request(HELLO, [], "auto", config)["cache_prompt"] is expected


def test_a_conversation_with_tools_keeps_calls_results_errors_and_reasoning() -> None:
    call = ToolCall(id="c1", function="add", arguments={"a": 1})
    thought: list[Content] = [ContentReasoning(reasoning="hm"), ContentText(text="Let me add.")]
    failed = ToolCallError(type="timeout", message="too slow")

    messages = build_request(
        [
            ChatMessageSystem(content="Be brief."),
            ChatMessageUser(content="1+1?"),
            ChatMessageAssistant(content=thought, tool_calls=[call]),
            ChatMessageTool(content="2", tool_call_id="c1", function="add"),
            ChatMessageTool(content="", tool_call_id="c2", function="add", error=failed),
        ],
        [ADD],
        "auto",
        GenerateConfig(),
    )["messages"]

    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "tool"]
    assert messages[2]["content"] == "Let me add."
    assert messages[2]["reasoning_content"] == "hm"
    assert json.loads(messages[2]["tool_calls"][0]["function"]["arguments"]) == {"a": 1}
    assert messages[3] == {"role": "tool", "content": "2", "tool_call_id": "c1"}
    assert messages[4]["content"] == "too slow"


@pytest.mark.parametrize(
    ("choice", "names", "sent"),
    [
        ("auto", ["add", "subtract"], "auto"),
        ("none", ["add", "subtract"], "none"),
        ("any", ["add", "subtract"], "required"),
        (ToolFunction(name="add"), ["add"], "required"),
    ],
)
def test_tools_and_the_choice_among_them(choice: object, names: list[str], sent: str) -> None:
    request = build_request(HELLO, [ADD, SUBTRACT], choice, GenerateConfig())  # type: ignore[arg-type]

    assert [tool["function"]["name"] for tool in request["tools"]] == names
    assert request["tool_choice"] == sent
    assert request["tools"][0]["function"]["parameters"]["required"] == ["a"]


def test_structured_output_is_asked_for_by_schema() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    config = GenerateConfig(response_schema=ResponseSchema(name="number", json_schema=schema))

    wanted = build_request(HELLO, [], "auto", config)["response_format"]
    assert wanted == {"type": "json_schema", "json_schema": {"name": "number", "schema": schema, "strict": True}}


def test_media_are_refused_by_name() -> None:
    message = ChatMessageUser(content=[ContentImage(image="data:image/png;base64,AAAA")])

    with pytest.raises(UsageError, match="image content"):
        build_request([message], [], "auto", GenerateConfig())


@given(st.text())
def test_any_text_arrives_as_it_is(text: str) -> None:
    [message] = build_request([ChatMessageUser(content=text)], [], "auto", GenerateConfig())["messages"]

    assert message["content"] == text

"""The Responses API over the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor.contracts import Retry
from proctor.schema import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentDocument,
    ContentImage,
    ContentReasoning,
    ContentText,
    ContentToolUse,
    ResponseSchema,
    ToolFunction,
    ToolInfo,
    ToolParam,
    ToolParams,
)
from proctor_provider_openai._errors import APIError, MalformedResponse
from proctor_testkit import FakeOpenAI

pytestmark = pytest.mark.anyio

PNG = "data:image/png;base64,iVBORw0KGgo="
O3 = {"name": "openai/o3", "responses_api": True}


@pytest.fixture
def weather() -> ToolInfo:
    parameters = ToolParams(properties={"city": ToolParam(type="string")}, required=["city"])
    return ToolInfo(name="weather", description="Looks up the weather.", parameters=parameters)


async def test_a_prompt_is_answered(server: FakeOpenAI, api: Any, ask: Any) -> None:
    server.say("Four.", usage={"prompt": 20, "completion": 5, "cached": 8, "reasoning": 2})
    asked: list[ChatMessage] = [ChatMessageSystem(content="Be brief."), ChatMessageUser(content="What is 2 + 2?")]

    output = await ask(api(server, "openai/gpt-4o", responses_api=True), asked)

    assert output.message.content == "Four."
    assert output.stop_reason == "stop"
    usage = output.usage
    assert usage is not None
    assert (usage.input_tokens, usage.input_tokens_cache_read, usage.output_tokens) == (12, 8, 5)
    assert (usage.total_tokens, usage.reasoning_tokens) == (25, 2)
    (request,) = server.requests
    assert request.path == "/v1/responses"
    assert request.body == {
        "model": "gpt-4o",
        "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 2 + 2?"}],
        "store": False,
    }


async def test_settings_are_sent_under_their_names(server: FakeOpenAI, api: Any, ask: Any, weather: ToolInfo) -> None:
    await ask(
        api(server, **O3),
        tools=[weather],
        tool_choice=ToolFunction(name="weather"),
        max_tokens=100,
        reasoning_effort="low",
        reasoning_summary="auto",
        verbosity="low",
        parallel_tool_calls=False,
        response_schema=ResponseSchema(name="reply", json_schema={"type": "object"}),
    )

    body = server.requests[0].body
    assert body["max_output_tokens"] == 100
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["text"] == {
        "format": {"type": "json_schema", "name": "reply", "schema": {"type": "object"}},
        "verbosity": "low",
    }
    assert body["tools"][0]["name"] == "weather"
    assert body["tools"][0]["type"] == "function"
    assert body["tool_choice"] == {"type": "function", "name": "weather"}
    assert body["parallel_tool_calls"] is False


async def test_reasoning_calls_and_answers_go_back_as_they_came(
    server: FakeOpenAI, api: Any, ask: Any, weather: ToolInfo
) -> None:
    server.say("Let me look.", reasoning="Need data.", calls=[("weather", {"city": "Bern"})])
    model = api(server, **O3)
    asked = ChatMessageUser(content="Weather?")

    first = await ask(model, [asked], [weather])
    (call,) = first.message.tool_calls or []
    result = ChatMessageTool(
        content=[ContentText(text="sunny"), ContentImage(image=PNG)], tool_call_id=call.id, function="weather"
    )
    copy = ChatMessageAssistant.model_validate_json(first.message.model_dump_json())  # as a log gives it back
    await ask(model, [asked, copy, result], [weather])

    assert first.stop_reason == "tool_calls"
    reasoning = first.message.content[0]
    assert isinstance(reasoning, ContentReasoning)
    assert (reasoning.summary, reasoning.redacted) == ("Need data.", True)
    items = server.requests[1].body["input"]
    assert [item.get("type", item.get("role")) for item in items] == [
        "user",
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert items[1]["encrypted_content"].startswith("opaque:")
    assert items[2]["content"][0]["text"] == "Let me look."
    assert items[3] == {
        "type": "function_call",
        "call_id": call.id,
        "name": "weather",
        "arguments": '{"city": "Bern"}',
    }
    assert items[4]["output"] == [
        {"type": "input_text", "text": "sunny"},
        {"type": "input_image", "image_url": PNG, "detail": "auto"},
    ]


async def test_reasoning_stands_before_the_call_that_it_led_to(server: FakeOpenAI, api: Any, ask: Any) -> None:
    def think(number: int) -> dict[str, Any]:
        return {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"e{number}"}

    def call(number: int) -> dict[str, Any]:
        return {"type": "function_call", "call_id": f"c{number}", "name": "f", "arguments": "{}"}

    output = [think(1), call(1), think(2), call(2)]
    server.send(200, json.dumps({"id": "r", "model": "o3", "status": "completed", "output": output}).encode())
    model = api(server, **O3)

    reply = await ask(model)
    await ask(model, [ChatMessageUser(content="?"), reply.message])

    assert server.requests[1].body["input"][1:] == output


async def test_media_is_sent(server: FakeOpenAI, api: Any, ask: Any) -> None:
    content = [
        ContentText(text="Look:"),
        ContentImage(image=PNG, detail="high"),
        ContentDocument(document="data:application/pdf;base64,JVBERg==", filename="a.pdf"),
        ContentDocument(document="https://example.org/b.pdf"),
    ]

    await ask(api(server, **O3), [ChatMessageUser(content=content)])

    assert server.requests[0].body["input"][0]["content"] == [
        {"type": "input_text", "text": "Look:"},
        {"type": "input_image", "image_url": PNG, "detail": "high"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
        {"type": "input_file", "file_url": "https://example.org/b.pdf"},
    ]


async def test_log_probabilities_come_back(server: FakeOpenAI, api: Any, ask: Any) -> None:
    server.say("Four", logprobs=[("Fo", -0.25), ("ur", -0.5)])

    output = await ask(api(server, "openai/gpt-4o", responses_api=True), logprobs=True, top_logprobs=2)

    assert server.requests[0].body["include"] == ["message.output_text.logprobs"]
    assert server.requests[0].body["top_logprobs"] == 2
    assert [one.logprob for one in output.choice.logprobs.content] == [-0.25, -0.5]


async def test_a_cut_reply_and_a_refusal(server: FakeOpenAI, api: Any, ask: Any) -> None:
    server.say("Fo", finish="length")
    server.say(refusal="No.")
    model = api(server, **O3)

    assert (await ask(model)).stop_reason == "max_tokens"
    refused = await ask(model)

    assert refused.stop_reason == "content_filter"
    assert refused.message.content[0].refusal is True


async def test_a_search_on_the_server_s_side_is_kept_and_replayed(server: FakeOpenAI, api: Any, ask: Any) -> None:
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    }
    note = {"type": "url_citation", "url": "https://example.org", "title": "Example", "start_index": 0, "end_index": 4}
    text = {"type": "output_text", "text": "Four", "annotations": [note]}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    body = {"id": "r", "model": "o3", "status": "completed", "output": [search, message]}
    server.send(200, json.dumps(body).encode())
    model = api(server, **O3)

    reply = await ask(model)
    await ask(model, [ChatMessageUser(content="?"), reply.message])

    used = reply.message.content[0]
    assert isinstance(used, ContentToolUse)
    assert (used.tool_type, json.loads(used.arguments)["query"]) == ("web_search", "x")
    assert reply.message.content[1].citations == [{"type": "url", "url": "https://example.org", "title": "Example"}]
    assert server.requests[1].body["input"][1:] == [search, message]


async def test_a_prompt_against_the_rules_is_content_that_was_filtered(server: FakeOpenAI, api: Any, ask: Any) -> None:
    body = {"id": "r", "status": "failed", "error": {"code": "bio_policy", "message": "Not this."}, "output": []}
    server.send(200, json.dumps(body).encode())

    output = await ask(api(server, **O3))

    assert (output.stop_reason, output.error) == ("content_filter", "Not this.")


@pytest.mark.parametrize(
    ("code", "retry"),
    [("rate_limit_exceeded", "rate_limit"), ("server_error", "transient"), ("invalid_image", "permanent")],
)
async def test_a_response_that_failed(server: FakeOpenAI, api: Any, ask: Any, code: str, retry: str) -> None:
    body = {"id": "r", "status": "failed", "error": {"code": code, "message": "It failed."}, "output": []}
    server.send(200, json.dumps(body).encode())
    model = api(server, **O3)

    with pytest.raises(APIError, match=r"It failed\.") as raised:
        await ask(model)

    assert model.classify(raised.value).kind == retry


async def test_a_success_that_is_no_response_is_tried_again(server: FakeOpenAI, api: Any, ask: Any) -> None:
    server.send(200, b'{"output": [{"type": "message"}]}')
    model = api(server, **O3)

    with pytest.raises(MalformedResponse) as raised:
        await ask(model)

    assert model.classify(raised.value) == Retry("transient")


@pytest.mark.parametrize(
    ("name", "official", "path"),
    [
        ("gpt-4o-mini", True, "chat"),
        ("gpt-5", True, "responses"),
        ("o3-mini", True, "responses"),
        ("gpt-5-chat-latest", True, "chat"),
        ("gpt-5", False, "chat"),
        ("o1-pro", False, "responses"),
        ("gpt-5-codex", False, "responses"),
    ],
)
def test_the_api_follows_from_the_model(api: Any, name: str, official: bool, path: str) -> None:
    model = api(None, f"openai/{name}", base_url="https://api.openai.com/v1" if official else "http://127.0.0.1:1/v1")

    assert ("responses" if model._responses else "chat") == path


async def test_several_choices_need_chat_completions(server: FakeOpenAI, api: Any, ask: Any) -> None:
    output = await ask(api(server, **O3), num_choices=2)

    assert server.requests[0].path == "/v1/chat/completions"
    assert len(output.choices) == 2

"""Chat completions over the wire: what is sent, and what is made of the reply."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from proctor.contracts import CallRecord, current_call
from proctor.schema import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentAudio,
    ContentDocument,
    ContentImage,
    ContentReasoning,
    ContentText,
    ContentVideo,
    ResponseSchema,
    ToolCall,
    ToolCallError,
    ToolFunction,
    ToolInfo,
    ToolParam,
    ToolParams,
)
from proctor_testkit import FakeOpenAI

pytestmark = pytest.mark.anyio

PNG = "data:image/png;base64,iVBORw0KGgo="


@pytest.fixture
def weather() -> ToolInfo:
    parameters = ToolParams(properties={"city": ToolParam(type="string", description="A city.")}, required=["city"])
    return ToolInfo(name="weather", description="Looks up the weather.", parameters=parameters)


def user(*content: Content) -> list[ChatMessage]:
    return [ChatMessageUser(content=list(content))]


async def test_a_prompt_is_answered(server: FakeOpenAI, api: Any, ask: Any) -> None:
    server.say("Four.", usage={"prompt": 20, "completion": 5, "cached": 8, "written": 1, "reasoning": 2})

    output = await ask(api(server), "What is 2 + 2?")

    assert output.completion == "Four."
    assert output.message.content == "Four."
    assert output.message.source == "generate"
    assert output.stop_reason == "stop"
    assert output.model == "gpt-4o-mini"
    assert output.response_id is not None
    usage = output.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (11, 5), "what a cache gave or took is apart"
    assert (usage.input_tokens_cache_read, usage.input_tokens_cache_write) == (8, 1)
    assert (usage.total_tokens, usage.reasoning_tokens) == (25, 2)
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"].startswith("Bearer sk-test")
    assert request.body == {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "What is 2 + 2?"}]}


async def test_settings_are_sent_under_their_names(server: FakeOpenAI, api: Any, ask: Any) -> None:
    await ask(
        api(server),
        temperature=0.0,
        top_p=0.5,
        max_tokens=7,
        stop_seqs=["END"],
        seed=42,
        num_choices=2,
        frequency_penalty=0.1,
        presence_penalty=0.2,
        logit_bias={42: -100.0},
        logprobs=True,
        top_logprobs=3,
        extra_body={"custom": 1},
        extra_headers={"X-Team": "blue"},
        response_schema=ResponseSchema(name="reply", json_schema={"type": "object"}, strict=True),
    )

    request = server.requests[0]
    sent = {name: value for name, value in request.body.items() if name not in ("model", "messages")}
    assert sent == {
        "temperature": 0.0,
        "top_p": 0.5,
        "max_tokens": 7,
        "stop": ["END"],
        "seed": 42,
        "n": 2,
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "logit_bias": {"42": -100.0},
        "logprobs": True,
        "top_logprobs": 3,
        "custom": 1,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": {"type": "object"}, "strict": True},
        },
    }
    assert request.headers["x-team"] == "blue"


async def test_several_choices_come_back(server: FakeOpenAI, api: Any, ask: Any) -> None:
    output = await ask(api(server), num_choices=3)

    assert len(output.choices) == 3


async def test_log_probabilities_come_back(server: FakeOpenAI, api: Any, ask: Any) -> None:
    server.say("Four", logprobs=[("Fo", -0.25), ("ur", -0.5)])

    output = await ask(api(server), logprobs=True)

    logprobs = output.choice.logprobs
    assert logprobs is not None
    assert [(one.token, one.logprob) for one in logprobs.content] == [("Fo", -0.25), ("ur", -0.5)]


async def test_a_tool_is_offered_called_and_answered(server: FakeOpenAI, api: Any, ask: Any, weather: ToolInfo) -> None:
    server.say(calls=[("weather", {"city": "Zürich"}), ("weather", {"city": "Bern"})])
    model = api(server)

    asked: list[ChatMessage] = [ChatMessageUser(content="Weather?")]
    output = await ask(model, asked, [weather], parallel_tool_calls=True)

    assert output.stop_reason == "tool_calls"
    calls = output.message.tool_calls or []
    assert [call.arguments for call in calls] == [{"city": "Zürich"}, {"city": "Bern"}]
    assert server.requests[0].body["tools"][0]["function"]["parameters"]["required"] == ["city"]
    assert server.requests[0].body["tool_choice"] == "auto"
    assert server.requests[0].body["parallel_tool_calls"] is True

    answers: list[ChatMessage] = [
        ChatMessageTool(content="sunny", tool_call_id=calls[0].id, function="weather"),
        ChatMessageTool(
            content="", tool_call_id=calls[1].id, error=ToolCallError(type="timeout", message="took too long")
        ),
    ]
    await ask(model, [*asked, output.message, *answers], [weather])

    wire = server.requests[1].body["messages"]
    assert wire[1]["content"] is None
    assert [json.loads(call["function"]["arguments"]) for call in wire[1]["tool_calls"]] == [
        {"city": "Zürich"},
        {"city": "Bern"},
    ]
    assert wire[2:] == [
        {"role": "tool", "tool_call_id": calls[0].id, "content": "sunny"},
        {"role": "tool", "tool_call_id": calls[1].id, "content": "took too long"},
    ]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("any", "required"),
        ("none", "none"),
        (ToolFunction(name="weather"), {"type": "function", "function": {"name": "weather"}}),
    ],
)
async def test_a_tool_choice_is_sent(
    server: FakeOpenAI, api: Any, ask: Any, weather: ToolInfo, choice: Any, sent: Any
) -> None:
    await ask(api(server), tools=[weather], tool_choice=choice)

    assert server.requests[0].body["tool_choice"] == sent


@pytest.mark.parametrize(
    ("raw", "arguments", "broken"),
    [
        ("", {}, False),
        ('{"city": "Bern"}', {"city": "Bern"}, False),
        ('"Bern"', {"city": "Bern"}, False),
        ('{"city": "Be', {}, True),
    ],
)
async def test_arguments_are_read_narrowly(
    server: FakeOpenAI, api: Any, ask: Any, weather: ToolInfo, raw: str, arguments: dict[str, Any], broken: bool
) -> None:
    server.say(calls=[("weather", raw)])

    output = await ask(api(server), tools=[weather])

    (call,) = output.message.tool_calls or []
    assert call.arguments == arguments
    assert (call.parse_error is not None) == broken


async def test_media_is_sent(server: FakeOpenAI, api: Any, ask: Any, tmp_path: Path) -> None:
    (tmp_path / "dot.gif").write_bytes(b"GIF89a")
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7")
    content: list[Content] = [
        ContentText(text="Look:"),
        ContentImage(image=PNG, detail="low"),
        ContentImage(image="https://example.org/cat.jpg"),
        ContentImage(image=str(tmp_path / "dot.gif")),
        ContentAudio(audio="data:audio/wav;base64,UklGRg==", format="wav"),
        ContentDocument(document=str(tmp_path / "paper.pdf")),
    ]

    await ask(api(server), user(*content))

    gif = f"data:image/gif;base64,{base64.b64encode(b'GIF89a').decode()}"
    pdf = f"data:application/pdf;base64,{base64.b64encode(b'%PDF-1.7').decode()}"
    assert server.requests[0].body["messages"][0]["content"] == [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.jpg"}},
        {"type": "image_url", "image_url": {"url": gif}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "file", "file": {"filename": "paper.pdf", "file_data": pdf}},
    ]
    assert content[3] == ContentImage(image=str(tmp_path / "dot.gif")), "the caller's message stays as it was"


async def test_a_missing_file_is_named(server: FakeOpenAI, api: Any, ask: Any) -> None:
    with pytest.raises(ValueError, match=r"cannot read the image 'no/such\.png'"):
        await ask(api(server), user(ContentImage(image="no/such.png")))
    assert server.requests == []


async def test_content_that_the_service_can_not_take_is_an_error(server: FakeOpenAI, api: Any, ask: Any) -> None:
    official = api(server, base_url="https://api.openai.com/v1")

    with pytest.raises(ValueError, match="no content of type 'video'"):
        await ask(official, user(ContentVideo(video="https://example.org/a.mp4", format="mp4")))


async def test_images_of_a_tool_follow_its_answer(server: FakeOpenAI, api: Any, ask: Any) -> None:
    call = ToolCall(id="c1", function="screen", arguments={})
    messages: list[ChatMessage] = [
        ChatMessageUser(content="Look."),
        ChatMessageAssistant(content="", tool_calls=[call]),
        ChatMessageTool(content=[ContentText(text="the screen"), ContentImage(image=PNG)], tool_call_id="c1"),
    ]

    await ask(api(server), messages)

    assert server.requests[0].body["messages"][2:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "the screen"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG}}]},
    ]


async def test_a_refusal_is_content_that_was_filtered(server: FakeOpenAI, api: Any, ask: Any) -> None:
    server.say(refusal="I can't help with that.")

    output = await ask(api(server))

    assert output.stop_reason == "content_filter"
    assert output.message.content == [ContentText(text="I can't help with that.", refusal=True)]


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("stop", "stop"), ("length", "max_tokens"), ("content_filter", "content_filter"), ("odd", "unknown")],
)
async def test_finish_reasons_are_translated(server: FakeOpenAI, api: Any, ask: Any, finish: str, reason: str) -> None:
    server.say("Four.", finish=finish)

    assert (await ask(api(server))).stop_reason == reason


async def test_reasoning_in_a_field_of_its_own(server: FakeOpenAI, api: Any, ask: Any) -> None:
    server.say("Four.", reasoning="Two and two.")

    output = await ask(api(server))

    assert output.message.content == [ContentReasoning(reasoning="Two and two."), ContentText(text="Four.")]
    assert output.completion == "Four."


@pytest.mark.parametrize("text", ["<think>\nTwo and two.\n</think>\n\nFour.", "Two and two.</think>Four."])
async def test_reasoning_in_think_tags(server: FakeOpenAI, api: Any, ask: Any, text: str) -> None:
    server.say(text)

    output = await ask(api(server))

    assert output.message.content == [ContentReasoning(reasoning="Two and two."), ContentText(text="Four.")]


@pytest.mark.parametrize(
    ("name", "field"),
    [("deepseek/deepseek-reasoner", "reasoning_content"), ("vllm/qwen", "reasoning_content"), ("together/x", None)],
)
async def test_reasoning_goes_back_where_the_service_wants_it(
    server: FakeOpenAI, api: Any, ask: Any, name: str, field: str | None
) -> None:
    earlier = ChatMessageAssistant(content=[ContentReasoning(reasoning="Two and two."), ContentText(text="Four.")])

    await ask(api(server, name), [ChatMessageUser(content="?"), earlier, ChatMessageUser(content="Sure?")])

    wire = server.requests[0].body["messages"][1]
    assert wire == {"role": "assistant", "content": "Four.", **({field: "Two and two."} if field else {})}


async def test_openrouter_s_reasoning_details_are_replayed_as_they_came(server: FakeOpenAI, api: Any, ask: Any) -> None:
    details = [{"type": "reasoning.encrypted", "data": "xyz", "id": "r1", "index": 0}]
    message = {"role": "assistant", "content": "Four.", "reasoning_details": details}
    body = {"id": "1", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    server.send(200, json.dumps(body).encode())
    model = api(server, "openrouter/some/model")

    output = await ask(model, reasoning_effort="low")
    await ask(model, [ChatMessageUser(content="?"), output.message])

    assert server.requests[0].body["reasoning"] == {"effort": "low"}
    assert server.requests[1].body["messages"][1] == message
    assert server.requests[1].body["model"] == "some/model"


async def test_system_messages_are_developer_messages_for_openai_s_reasoning_models(
    server: FakeOpenAI, api: Any, ask: Any
) -> None:
    asked: list[ChatMessage] = [ChatMessageSystem(content="Be brief."), ChatMessageUser(content="?")]

    await ask(api(server, "openai/o3", responses_api=False), asked)

    assert server.requests[0].body["messages"][0]["role"] == "system", "a server of one's own knows no developer"


async def test_lone_surrogates_survive_both_ways(server: FakeOpenAI, api: Any, ask: Any) -> None:
    server.say("an \ud83d answer")

    output = await ask(api(server), "half a \ud83d pair")

    assert server.requests[0].body["messages"][0]["content"] == "half a \ud83d pair"
    assert output.completion == "an \ud83d answer"


async def test_the_raw_call_is_handed_over(server: FakeOpenAI, api: Any, ask: Any) -> None:
    server.headers["x-ratelimit-remaining-requests"] = "7"
    model = api(server)
    record = CallRecord()
    token = current_call.set(record)

    await ask(model)
    current_call.reset(token)

    assert record.request == server.requests[0].body
    assert record.response["object"] == "chat.completion"
    assert record.time is not None and record.time > 0
    assert record.headers is not None
    limits = model.limits(record.headers)
    assert limits is not None and limits.requests_remaining == 7

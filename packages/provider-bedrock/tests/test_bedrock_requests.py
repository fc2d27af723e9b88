"""What is sent: messages, tools, settings and media, as Converse has them. The fake refuses what Bedrock refuses."""

from __future__ import annotations

import base64
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proctor.schema import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
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
from proctor_provider_bedrock import _settings
from proctor_provider_bedrock._messages import converse_messages
from proctor_testkit import FakeBedrock

pytestmark = pytest.mark.anyio

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NEW_CLAUDE = "global.anthropic.claude-opus-4-6-v1"
ADAPTIVE = {"thinking": {"type": "adaptive"}}
NOVA = "us.amazon.nova-lite-v1:0"
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n pixel").decode()
ADD = ToolInfo(
    name="add",
    description="Add two numbers.",
    parameters=ToolParams(properties={"x": ToolParam(type="integer"), "y": ToolParam(type="integer")}, required=["x"]),
)
CALL = ToolCall(id="tooluse_1", function="add", arguments={"x": 1, "y": 2})
USED = [
    ChatMessageUser(content="1 + 2?"),
    ChatMessageAssistant(content="", tool_calls=[CALL, ToolCall(id="tooluse_2", function="add", arguments={"x": 3})]),
    ChatMessageTool(content="3", tool_call_id="tooluse_1", function="add"),
    ChatMessageTool(
        content="",
        tool_call_id="tooluse_2",
        function="add",
        error=ToolCallError(type="parsing", message="y is missing"),
    ),
]


@pytest.fixture
def sent(server: FakeBedrock, api: Any, ask: Any) -> Any:
    """``await sent(model, input, tools, choice, args={}, **config)``: the body that the service got."""

    async def send(model: str, *what: Any, args: dict[str, Any] | None = None, **config: Any) -> dict[str, Any]:
        await ask(api(server, model, **(args or {})), *what, **config)
        return server.requests[-1].body

    return send


async def test_a_conversation(sent: Any) -> None:
    body = await sent(
        NOVA,
        [
            ChatMessageSystem(content="Be brief."),
            ChatMessageUser(content="Which colour is the sky?"),
            ChatMessageAssistant(content="Blue."),
            ChatMessageUser(content="And grass?"),
        ],
    )

    assert body == {
        "system": [{"text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"text": "Which colour is the sky?"}]},
            {"role": "assistant", "content": [{"text": "Blue."}]},
            {"role": "user", "content": [{"text": "And grass?"}]},
        ],
    }


async def test_blank_texts_are_not_sent_and_roles_alternate(sent: Any) -> None:
    body = await sent(
        NOVA,
        [
            ChatMessageSystem(content="  \n"),
            ChatMessageUser(content=[ContentText(text=" "), ContentText(text="One.")]),
            ChatMessageAssistant(content=""),
            ChatMessageUser(content="Two."),
        ],
    )

    assert body == {"messages": [{"role": "user", "content": [{"text": "One."}, {"text": "Two."}]}]}


async def test_a_conversation_of_blanks_is_refused_here(api: Any, ask: Any, server: FakeBedrock) -> None:
    with pytest.raises(ValueError, match="nothing to send"):
        await ask(api(server), "  ")

    assert not server.requests


TEXTS = st.sampled_from(["", " ", "\n\t", "word", " word ", "\u00a0"])
MESSAGES = st.lists(
    st.one_of(
        st.builds(ChatMessageSystem, content=TEXTS),
        st.builds(ChatMessageUser, content=st.one_of(TEXTS, st.lists(st.builds(ContentText, text=TEXTS), max_size=3))),
        st.builds(ChatMessageAssistant, content=TEXTS),
        st.builds(ChatMessageTool, content=TEXTS, tool_call_id=st.text(max_size=3), function=st.just("f")),
    ),
    max_size=8,
)


@given(MESSAGES, st.booleans())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_whatever_the_conversation_no_text_is_blank_and_roles_alternate(
    messages: list[ChatMessage], tools: bool
) -> None:
    try:
        system, sent = converse_messages(messages, with_tools=tools, family="other")
    except ValueError:
        return

    texts = [block["text"] for message in sent for block in message["content"] if "text" in block]
    assert all(text.strip() for text in [*texts, *(block["text"] for block in system)])
    assert all(message["content"] for message in sent)
    assert all(one["role"] != other["role"] for one, other in itertools.pairwise(sent))


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("auto", None), ("any", {"any": {}}), (ToolFunction(name="add"), {"tool": {"name": "add"}})],
)
async def test_tools_and_their_choice(sent: Any, choice: Any, expected: Any) -> None:
    body = await sent(CLAUDE, "1 + 2?", [ADD], choice)

    [tool] = body["toolConfig"]["tools"]
    assert tool["toolSpec"]["name"] == "add" and tool["toolSpec"]["description"] == "Add two numbers."
    assert set(tool["toolSpec"]["inputSchema"]["json"]["properties"]) == {"x", "y"}
    assert body["toolConfig"].get("toolChoice") == expected


async def test_results_of_parallel_calls_go_back_in_one_message(sent: Any) -> None:
    body = await sent(CLAUDE, USED, [ADD])

    assert body["messages"][1]["content"] == [
        {"toolUse": {"toolUseId": "tooluse_1", "name": "add", "input": {"x": 1, "y": 2}}},
        {"toolUse": {"toolUseId": "tooluse_2", "name": "add", "input": {"x": 3}}},
    ]
    assert body["messages"][2]["content"] == [
        {"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": "3"}]}},
        {"toolResult": {"toolUseId": "tooluse_2", "content": [{"text": "y is missing"}], "status": "error"}},
    ]


@pytest.mark.parametrize(("tools", "choice"), [([ADD], "none"), ([], "auto")])
async def test_where_no_tool_may_be_called_earlier_calls_are_told_as_text(sent: Any, tools: Any, choice: Any) -> None:
    body = await sent(CLAUDE, USED, tools, choice)

    assert "toolConfig" not in body
    assert body["messages"][1]["content"][0] == {"text": '[called add with {"x": 1, "y": 2}]'}
    assert body["messages"][2]["content"][:2] == [{"text": "[add answered]"}, {"text": "3"}]


async def test_ids_of_other_providers_become_ones_that_bedrock_takes(sent: Any) -> None:
    call = ToolCall(id="fc_" + "x" * 80 + "|é", function="add", arguments={})

    body = await sent(
        NOVA,
        [
            ChatMessageUser(content="?"),
            ChatMessageAssistant(content="", tool_calls=[call]),
            ChatMessageTool(content=" ", tool_call_id=call.id, function="add"),
        ],
        [ADD],
    )

    [used], [result] = (message["content"] for message in body["messages"][1:])
    assert used["toolUse"]["toolUseId"] == result["toolResult"]["toolUseId"]
    assert len(used["toolUse"]["toolUseId"]) <= 64
    assert result["toolResult"]["content"] == [{"text": "(no output)"}]


async def test_one_call_at_a_time_is_said_to_claude_in_its_own_field_and_only_there(sent: Any) -> None:
    auto = await sent(CLAUDE, "?", [ADD], parallel_tool_calls=False)
    forced = await sent(CLAUDE, "?", [ADD], ToolFunction(name="add"), parallel_tool_calls=False)
    nova = await sent(NOVA, "?", [ADD], "any", parallel_tool_calls=False)

    assert auto["additionalModelRequestFields"]["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert forced["additionalModelRequestFields"]["tool_choice"]["name"] == "add"
    assert "toolChoice" not in auto["toolConfig"] and "toolChoice" not in forced["toolConfig"]
    assert "additionalModelRequestFields" not in nova and nova["toolConfig"]["toolChoice"] == {"any": {}}


async def test_reasoning_goes_back_as_it_came_and_unsigned_reasoning_does_not(sent: Any) -> None:
    opaque = base64.b64encode(b"\x00\xffopaque").decode()
    content = [
        ContentReasoning(reasoning=" Hm.\n", signature="c2ln"),
        ContentReasoning(reasoning=opaque, redacted=True),
        ContentReasoning(reasoning="another model's"),
        ContentText(text="Blue."),
    ]

    body = await sent(
        CLAUDE, [ChatMessageUser(content="?"), ChatMessageAssistant(content=content), ChatMessageUser(content="?")]
    )

    assert body["messages"][1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": " Hm.\n", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": opaque}},
        {"text": "Blue."},
    ]


async def test_media(sent: Any, tmp_path: Path) -> None:
    (tmp_path / "pixel.jpg").write_bytes(b"jpeg")
    content = [
        ContentText(text="What are these?"),
        ContentImage(image=f"data:image/png;base64,{PIXEL}"),
        ContentImage(image=str(tmp_path / "pixel.jpg")),
        ContentImage(image="s3://bucket/a.webp"),
        ContentDocument(document="data:application/pdf;base64,JVBERg==", filename="My report_1.pdf"),
        ContentDocument(document="data:application/pdf;base64,JVBERg==", filename="My report 1.pdf"),
        ContentDocument(document="data:text/csv;base64,YQ==", mime_type="text/csv", citations=True),
        ContentAudio(audio="data:audio/wav;base64,UklGRg==", format="wav"),
        ContentVideo(video="s3://bucket/a.mp4", format="mp4"),
    ]

    body = await sent(NOVA, [ChatMessageUser(content=content)])

    _, png, jpeg, webp, report, other, csv, audio, video = body["messages"][0]["content"]
    assert png == {"image": {"format": "png", "source": {"bytes": PIXEL}}}
    assert jpeg["image"] == {"format": "jpeg", "source": {"bytes": base64.b64encode(b"jpeg").decode()}}
    assert webp["image"] == {"format": "webp", "source": {"s3Location": {"uri": "s3://bucket/a.webp"}}}
    assert report["document"] == {"format": "pdf", "name": "My report 1", "source": {"bytes": "JVBERg=="}}
    assert other["document"]["name"] == "My report 1 (2)"
    assert csv["document"]["format"] == "csv" and csv["document"]["citations"] == {"enabled": True}
    assert audio["audio"] == {"format": "wav", "source": {"bytes": "UklGRg=="}}
    assert video["video"]["source"] == {"s3Location": {"uri": "s3://bucket/a.mp4"}}


async def test_a_document_alone_gets_a_text_beside_it(sent: Any) -> None:
    body = await sent(NOVA, [ChatMessageUser(content=[ContentDocument(document="data:text/plain;base64,YQ==")])])

    assert [next(iter(block)) for block in body["messages"][0]["content"]] == ["document", "text"]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (ContentImage(image="https://example.org/a.png"), "fetches no image"),
        (ContentImage(image="data:image/tiff;base64,AAAA"), "takes png, jpeg, gif and webp"),
        (ContentImage(image="data:image/png;base64,%%"), "no base64"),
        (ContentImage(image="/nowhere/a.png"), "cannot read the image"),
        (ContentDocument(document="data:application/zip;base64,AAAA"), "takes documents of the types"),
    ],
)
async def test_media_that_bedrock_does_not_take_are_refused_here(
    api: Any, ask: Any, server: FakeBedrock, part: Any, said: str
) -> None:
    made = api(server)

    with pytest.raises(ValueError, match=said) as raised:
        await ask(made, [ChatMessageUser(content=[part])])

    assert made.classify(raised.value).kind == "permanent"
    assert not server.requests


async def test_settings_of_converse(sent: Any) -> None:
    body = await sent(NOVA, "?", max_tokens=10, temperature=0.5, top_p=0.9, stop_seqs=["END"], seed=1)

    assert body["inferenceConfig"] == {"maxTokens": 10, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]}
    assert "additionalModelRequestFields" not in body


@pytest.mark.parametrize(("setting", "value"), [("seed", 0), ("seed", 1), ("logprobs", True), ("num_choices", 2)])
async def test_what_converse_does_not_take_is_left_out_and_said(
    sent: Any, setting: str, value: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_settings, "_warned", set())

    await sent(NOVA, "?", **{setting: value, "frequency_penalty": 0.0, "presence_penalty": 0})

    assert [record.message for record in caplog.records if "left out" in record.message] == [
        f"Converse does not take {setting}; it is left out"
    ]


@pytest.mark.parametrize(
    ("model", "top_k", "fields"),
    [
        (CLAUDE, 40, {"top_k": 40}),
        (NOVA, 40, {"inferenceConfig": {"topK": 40}}),
        ("cohere.command-r-v1:0", 40, {"k": 40}),
        ("us.meta.llama3-3-70b-instruct-v1:0", 40, None),
        (CLAUDE, -1, None),
        (NOVA, 0, None),
    ],
)
async def test_top_k_is_sent_where_it_is_valid(sent: Any, model: str, top_k: int, fields: Any) -> None:
    body = await sent(model, "?", top_k=top_k)

    assert body.get("additionalModelRequestFields") == fields


@pytest.mark.parametrize(
    ("model", "config", "fields"),
    [
        (CLAUDE, {"reasoning_tokens": 2000}, {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        (CLAUDE, {"reasoning_effort": "low"}, {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        (CLAUDE, {"reasoning_effort": "none"}, None),
        (
            NEW_CLAUDE,
            {"reasoning_effort": "max"},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
        ),
        (NOVA, {"reasoning_effort": "low"}, {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}}),
        ("openai.gpt-oss-120b-1:0", {"reasoning_effort": "high"}, {"reasoning_effort": "high"}),
        ("us.deepseek.r1-v1:0", {"reasoning_effort": "high"}, None),
    ],
)
async def test_reasoning_is_asked_for_in_each_makers_way_and_streamed(
    sent: Any, server: FakeBedrock, model: str, config: dict[str, Any], fields: Any
) -> None:
    body = await sent(model, "?", **config)

    assert body.get("additionalModelRequestFields") == fields
    assert server.streamed == [config != {"reasoning_effort": "none"}]


async def test_what_a_model_refuses_while_it_reasons_is_left_out(sent: Any) -> None:
    claude = await sent(CLAUDE, "?", reasoning_tokens=2000, temperature=0.5, top_k=5, max_tokens=4000)
    nova = await sent(NOVA, "?", reasoning_effort="high", temperature=0.5, max_tokens=4000)

    assert claude["inferenceConfig"] == {"maxTokens": 4000}
    assert set(claude["additionalModelRequestFields"]) == {"thinking"}
    assert "inferenceConfig" not in nova


@pytest.mark.parametrize(
    ("stream", "max_tokens", "streamed"),
    [(None, 100, False), (None, 20_000, True), (True, 1, True), (False, 20_000, False)],
)
async def test_long_replies_are_streamed_unless_said_otherwise(
    sent: Any, server: FakeBedrock, stream: bool | None, max_tokens: int, streamed: bool
) -> None:
    await sent(NOVA, "?", args={"stream": stream}, max_tokens=max_tokens)

    assert server.streamed == [streamed]


@pytest.mark.parametrize(
    "model",
    [
        NOVA,
        "arn:aws:bedrock:us-east-1:123456789012:custom-model/amazon.nova-micro-v1:0:128k/abcdefgh1234",
        "arn:aws:bedrock:us-east-1:123456789012:imported-model/abcdefgh1234",
        "arn:aws:bedrock:us-east-1:123456789012:provisioned-model/abcdefgh1234",
        "arn:aws:bedrock:us-east-1:123456789012:custom-model-deployment/abcdefgh1234",
        "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abcdefgh1234",
        "arn:aws:sagemaker:us-east-1:123456789012:endpoint/mine",
    ],
)
async def test_every_name_of_a_model_arrives_whole(sent: Any, server: FakeBedrock, model: str) -> None:
    await sent(model, "?")

    assert server.models == [model]


async def test_the_family_of_an_arn_is_in_its_name_or_said(sent: Any) -> None:
    custom = "arn:aws:bedrock:us-east-1:123456789012:custom-model/amazon.nova-micro-v1:0:128k/abcdefgh1234"
    imported = "arn:aws:bedrock:us-east-1:123456789012:imported-model/abcdefgh1234"

    seen = await sent(custom, "?", top_k=5)
    unknown = await sent(imported, "?", top_k=5)
    said = await sent(imported, "?", top_k=5, args={"family": "mistral"})

    assert seen["additionalModelRequestFields"] == {"inferenceConfig": {"topK": 5}}
    assert "additionalModelRequestFields" not in unknown
    assert said["additionalModelRequestFields"] == {"top_k": 5}


async def test_a_guardrail_a_tier_and_a_latency(sent: Any) -> None:
    args = {
        "guardrail_identifier": "gr123",
        "guardrail_version": "2",
        "performance": "optimized",
        "service_tier": "flex",
    }

    body = await sent(NOVA, "?", args=args)

    assert body["guardrailConfig"] == {"guardrailIdentifier": "gr123", "guardrailVersion": "2", "trace": "enabled"}
    assert body["performanceConfig"] == {"latency": "optimized"}
    assert body["serviceTier"] == {"type": "flex"}


SCHEMA = ResponseSchema(
    name="colour",
    json_schema={"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": False},
)


async def test_a_response_schema(sent: Any) -> None:
    body = await sent(CLAUDE, "?", response_schema=SCHEMA)

    form = body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]
    assert form["name"] == "colour" and json.loads(form["schema"]) == SCHEMA.json_schema
    assert "toolConfig" not in body


async def test_a_response_schema_as_a_tool(api: Any, ask: Any, server: FakeBedrock) -> None:
    server.say(calls=[("colour", {"name": "blue"})])

    output = await ask(api(server, NOVA, structured_output="tool"), response_schema=SCHEMA)

    body = server.requests[0].body
    assert body["toolConfig"]["toolChoice"] == {"tool": {"name": "colour"}}
    assert "outputConfig" not in body
    assert output.completion == '{"name": "blue"}' and output.stop_reason == "stop"
    assert output.message.tool_calls is None


async def test_extra_fields_and_extra_headers(sent: Any, server: FakeBedrock) -> None:
    body = await sent(CLAUDE, "?", extra_body={"anthropic_beta": ["x"]}, extra_headers={"X-Team": "evals"})

    assert body["additionalModelRequestFields"] == {"anthropic_beta": ["x"]}
    assert server.requests[0].headers["x-team"] == "evals"


async def test_cache_points_are_set_where_they_are_asked_for(sent: Any) -> None:
    what = [ChatMessageSystem(content="Be brief."), ChatMessageUser(content="?")]
    point = {"cachePoint": {"type": "default"}}

    claude = await sent(CLAUDE, what, [ADD], cache_prompt=True)
    nova = await sent(NOVA, what, [ADD], cache_prompt="auto")
    off = await sent(CLAUDE, what, [], cache_prompt="auto")

    ends = [claude["toolConfig"]["tools"][-1], claude["system"][-1], claude["messages"][-1]["content"][-1]]
    assert ends == [point, point, point]
    assert [nova["system"][-1], nova["messages"][-1]["content"][-1]] == [point, point]
    assert "cachePoint" not in json.dumps([nova["toolConfig"], off])

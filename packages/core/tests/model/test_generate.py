"""Model.generate: what is sent, what is returned, and what the transcript keeps."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from proctor.concurrency import ConnectionPolicy, gates, run_gates
from proctor.limits import LimitExceededError, SampleLimits, use_limits
from proctor.log import Transcript, use_transcript
from proctor.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelOutput,
    configure_model_logging,
    use_models,
)
from proctor.model._input import collapse
from proctor.model._model import _warn_uncached
from proctor.model._record import without_media
from proctor.schema import ModelEvent, ToolInfo

pytestmark = pytest.mark.anyio


def model_events(transcript: Transcript) -> list[ModelEvent]:
    return [event for event in transcript.events if isinstance(event, ModelEvent)]


async def test_a_text_is_a_user_message(scripted: Any) -> None:
    model, api = scripted("four")

    output = await model.generate("What is 2 + 2?")

    (message,) = api.inputs[0]
    assert isinstance(message, ChatMessageUser)
    assert message.text == "What is 2 + 2?"
    assert output.completion == "four"
    assert output.message.id is not None
    assert output.time is not None


async def test_messages_get_ids_and_stay_the_caller_s(scripted: Any) -> None:
    model, _ = scripted("four")
    asked: list[ChatMessage] = [ChatMessageUser(content="?", id="mine"), ChatMessageAssistant(content="!")]

    await model.generate(asked)

    assert len(asked) == 2
    assert asked[0].id == "mine"
    assert asked[1].id is not None and len(asked[1].id) == 22


async def test_the_system_message_of_the_settings_comes_first(scripted: Any) -> None:
    model, api = scripted("four", config=GenerateConfig(system_message="Be brief."))

    await model.generate([ChatMessageSystem(content="You count."), ChatMessageUser(content="?")])

    assert [message.text for message in api.inputs[0]] == ["Be brief.", "You count.", "?"]


async def test_settings_of_the_call_lie_over_those_of_the_model(scripted: Any) -> None:
    model, api = scripted("four", config=GenerateConfig(temperature=0.1, seed=1))

    await model.generate("?", config=GenerateConfig(seed=2, max_tokens=3))
    await model.with_config(GenerateConfig(temperature=0.9)).generate("?")

    first, second = api.configs
    assert (first.temperature, first.seed, first.max_tokens) == (0.1, 2, 3)
    assert (second.temperature, second.seed, second.max_tokens) == (0.9, 1, None)


@pytest.mark.parametrize(("history", "kept"), [("none", []), ("last", ["two"]), ("all", ["one", "two"])])
async def test_earlier_reasoning_is_taken_out_as_told(scripted: Any, history: Any, kept: list[str]) -> None:
    model, api = scripted("four")
    turns: list[ChatMessage] = [
        ChatMessageAssistant(content=[ContentReasoning(reasoning="one"), ContentText(text="a")]),
        ChatMessageAssistant(content=[ContentReasoning(reasoning="two"), ContentText(text="b")]),
        ChatMessageAssistant(content="c"),
    ]

    await model.generate(turns, config=GenerateConfig(reasoning_history=history))

    parts = [part for message in api.inputs[0] if not isinstance(message.content, str) for part in message.content]
    assert [part.reasoning for part in parts if isinstance(part, ContentReasoning)] == kept
    assert len(turns[0].content) == 2, "the caller's messages stay as they were"


def test_neighbours_of_one_role_are_joined_for_providers_that_refuse_them() -> None:
    messages: list[ChatMessage] = [
        ChatMessageUser(content="a"),
        ChatMessageUser(content=[ContentText(text="b")]),
        ChatMessageAssistant(content="c"),
        ChatMessageAssistant(content="d"),
    ]

    joined = collapse(messages, users=True, assistants=True)

    assert [message.text for message in joined] == ["a\nb", "c\nd"]
    assert collapse(messages, users=False, assistants=False) == messages


async def test_tools_must_be_tools(scripted: Any) -> None:
    model, api = scripted("four")

    await model.generate("?", tools=[ToolInfo(name="f", description="d")])

    assert [tool.name for tool in api.tools[0]] == ["f"]
    with pytest.raises((TypeError, ValueError)):
        await model.generate("?", tools=["f"])


async def test_the_call_is_in_the_transcript_from_its_start(scripted: Any) -> None:
    configure_model_logging()
    transcript = Transcript()
    seen: list[tuple[bool | None, str]] = []

    async def look() -> str:
        (event,) = model_events(transcript)
        seen.append((event.pending, event.output.completion))
        return "four"

    model, _ = scripted(look, role="grader")
    with use_transcript(transcript):
        await model.generate("?", config=GenerateConfig(seed=7))

    assert seen == [(True, "")]
    (event,) = model_events(transcript)
    assert (event.pending, event.output.completion, event.error) == (None, "four", None)
    assert (event.model, event.role, event.config.seed) == ("test/scripted", "grader", 7)
    assert event.completed is not None
    assert event.call is not None and event.call.request == {"attempt": 1}
    assert event.retries is None


async def test_retries_are_counted_in_the_event(scripted: Any, refused: Any) -> None:
    model, _ = scripted(refused("transient"), refused("rate_limit"), "four")
    with use_transcript(Transcript()) as transcript:
        await model.generate("?")

    (event,) = model_events(transcript)
    assert event.retries == 2


async def test_a_failure_is_in_the_transcript(scripted: Any, refused: Any) -> None:
    model, _ = scripted(refused("permanent"))
    with use_transcript(Transcript()) as transcript, pytest.raises(Exception, match="refused"):
        await model.generate("?")

    (event,) = model_events(transcript)
    assert event.error == "Refused: refused (permanent)"
    assert event.pending is None
    assert event.completed is None
    assert event.output.message.text == ""
    assert event.call is not None and event.call.error is True


async def test_a_cancelled_call_is_in_the_transcript(scripted: Any) -> None:
    model, _ = scripted(anyio.sleep_forever)
    with use_transcript(Transcript()) as transcript, anyio.move_on_after(0.01):
        await model.generate("?")

    (event,) = model_events(transcript)
    assert event.error == "Cancelled by system"
    assert event.pending is None


async def test_a_call_that_a_time_limit_ends_says_so(scripted: Any) -> None:
    model, _ = scripted(anyio.sleep_forever)
    limits = SampleLimits(working_limit=0.01)
    over = pytest.raises(LimitExceededError)
    with use_transcript(Transcript()) as transcript, use_limits(limits), over, limits.enforce():
        await model.generate("?")

    assert model_events(transcript)[0].error == "Cancelled by limit"


async def test_headers_with_credentials_lose_their_values_in_the_transcript(scripted: Any) -> None:
    model, api = scripted("four")
    headers = {"X-Team": "blue", "Authorization": "Bearer secret-key-123"}
    with use_transcript(Transcript()) as transcript:
        await model.generate("?", config=GenerateConfig(extra_headers=headers))

    assert api.configs[0].extra_headers == headers
    assert model_events(transcript)[0].config.extra_headers == {"X-Team": "blue", "Authorization": "[removed]"}


@pytest.mark.parametrize(("setting", "kept"), [(None, 5), (True, 7), (False, 0)])
async def test_raw_calls_are_kept_as_the_setting_says(scripted: Any, setting: bool | None, kept: int) -> None:
    model, _ = scripted("four")
    for _ in range(2):  # two samples: each has a count of its own
        configure_model_logging(log_model_api=setting)
        with use_transcript(Transcript()) as transcript:
            for _ in range(7):
                await model.generate("?")
        assert sum(event.call is not None for event in model_events(transcript)) == kept


async def test_errors_keep_their_raw_call_whatever_the_setting(scripted: Any, refused: Any) -> None:
    configure_model_logging(log_model_api=False)
    model, _ = scripted(refused("permanent"))
    with use_transcript(Transcript()) as transcript, pytest.raises(Exception, match="refused"):
        await model.generate("?")

    assert model_events(transcript)[0].call is not None


async def test_images_are_left_out_of_the_transcript_when_told(scripted: Any) -> None:
    configure_model_logging(log_images=False)
    model, api = scripted("four")
    image = f"data:image/png;base64,{'A' * 400}"
    asked: list[ChatMessage] = [ChatMessageUser(content=[ContentText(text="?"), ContentImage(image=image)])]

    with use_transcript(Transcript()) as transcript:
        await model.generate(asked)

    assert image in str(api.inputs[0]), "the model sees it"
    assert "AAAA" not in str([event.model_dump() for event in model_events(transcript)])
    configure_model_logging()


def test_media_is_taken_out_of_raw_calls_and_nothing_else_is_copied() -> None:
    data = "A" * 400
    request = {
        "plain": {"text": data + " "},
        "messages": [
            {"image_url": {"url": f"data:image/png;base64,{data}"}},
            {"input_audio": {"data": data, "format": "wav"}},
            {"image": {"format": "png", "source": {"bytes": data}}},
        ],
    }

    kept = without_media(request)

    assert kept["messages"] == [
        {"image_url": {"url": "data:image/png;base64,<base64-data-removed>"}},
        {"input_audio": {"data": "<base64-data-removed>", "format": "wav"}},
        {"image": {"format": "png", "source": {"bytes": "<base64-data-removed>"}}},
    ]
    assert kept["plain"] is request["plain"]
    assert data in str(request), "what was sent is not changed"


async def test_usage_is_counted_by_model_and_role(scripted: Any) -> None:
    model, _ = scripted("four", role="grader")
    limits = SampleLimits()
    with use_limits(limits):
        await model.generate("?")
        await model.generate("?")

    assert limits.model_usage["test/scripted"].total_tokens == 10
    assert limits.role_usage["grader"].total_tokens == 10


async def test_a_call_that_goes_over_the_limit_is_complete_in_the_transcript(scripted: Any) -> None:
    model, _ = scripted("four")
    limits = use_limits(SampleLimits(token_limit=4))
    with use_transcript(Transcript()) as transcript, limits, pytest.raises(LimitExceededError):
        await model.generate("?")

    (event,) = model_events(transcript)
    assert event.output.completion == "four"
    assert event.pending is None


async def ask_at_once(count: int, *models: Any) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            for model in models:
                tasks.start_soon(model.generate, "?")


async def pause() -> str:
    for _ in range(3):
        await anyio.lowlevel.checkpoint()
    return "fine"


async def test_models_of_one_credential_share_one_gate(scripted: Any) -> None:
    model, api = scripted(pause, config=GenerateConfig(max_connections=3))

    await ask_at_once(6, model, model.with_config(GenerateConfig(temperature=1.0)))

    assert api.peak == 3
    assert len(gates()) == 1


async def test_a_grader_obeys_the_run_s_limit_unless_it_has_its_own(scripted: Any) -> None:
    evaluated, api = scripted(pause)
    grader, grader_api = scripted(pause, own_connections=2, config=GenerateConfig(max_connections=2))
    plain, plain_api = scripted(pause)
    plain_api.key = "another provider"

    with run_gates(policy=ConnectionPolicy(max_connections=4)), use_models(evaluated):
        await ask_at_once(8, evaluated)
        await ask_at_once(8, grader)
        await ask_at_once(8, plain)

    assert (grader_api.peak, plain_api.peak, api.peak) == (2, 4, 4)


async def test_the_number_of_one_model_is_not_that_of_another_provider(scripted: Any) -> None:
    evaluated, api = scripted(pause, config=GenerateConfig(max_connections=4))
    grader, grader_api = scripted(pause, max_connections=6)
    grader_api.key = "another provider"

    with use_models(evaluated):
        await ask_at_once(8, evaluated)
        await ask_at_once(8, grader)

    assert (api.peak, grader_api.peak) == (4, 6)


async def test_what_the_provider_says_of_its_quota_can_be_asked_for(scripted: Any) -> None:
    model, _ = scripted("four")

    assert model.rate_limits() is None
    await model.generate("?")

    assert model.rate_limits() is None, "this provider says nothing"


async def test_a_cache_that_does_not_exist_is_not_silently_promised(scripted: Any, caplog: Any) -> None:
    _warn_uncached.cache_clear()
    model, api = scripted("four")

    await model.generate("?", cache=True)
    await model.generate("?", cache=True)

    assert len(api.inputs) == 2
    assert caplog.text.count("replies are not cached") == 1


async def test_an_output_made_elsewhere_is_returned_as_it_is(scripted: Any) -> None:
    output = ModelOutput.from_content("other", "four")
    model, _ = scripted(output)

    assert await model.generate("?") is output

"""Condensing and expanding: what is read is what was written, long texts stand once, messages are encoded once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_samples import MODEL, sample

from proctor.log import Transcript, _pool, to_json
from proctor.log._condense import LONG, has_long_text
from proctor.log._encode import encode_sample
from proctor.log._expand import parse_sample
from proctor.schema import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    ContentImage,
    ContentText,
    EvalRetryError,
    EvalSample,
    EventsData,
    InfoEvent,
    ModelCall,
    ModelEvent,
    SampleInitEvent,
    StateEvent,
    ToolEvent,
    UnknownEvent,
)

TEXT = st.text(max_size=20) | st.text(st.sampled_from('a"\\\n é\ud83d\x00'), min_size=90, max_size=130)
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | TEXT
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=8
)
PNG = "data:image/png;base64," + "A" * 200


def _text(record: Any) -> str:
    return json.dumps(record.model_dump(mode="python", exclude_none=True), sort_keys=True)


def _longest(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return max((max(_longest(key), _longest(item)) for key, item in value.items()), default=0)
    return max(map(_longest, value), default=0) if isinstance(value, list) else 0


@given(JSON)
def test_no_long_text_is_overlooked(value: Any) -> None:
    raw = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
    if _longest(value) > LONG:
        assert has_long_text(raw)


def test_short_texts_are_passed_without_a_second_look() -> None:
    assert not has_long_text(json.dumps([f"{number:099d}" for number in range(50)]).encode())


MESSAGES = st.lists(
    st.builds(ChatMessageUser, content=TEXT, metadata=st.none() | st.dictionaries(TEXT, JSON, max_size=2))
    | st.builds(ChatMessageAssistant, content=TEXT.map(lambda text: [ContentText(text=text)]), id=st.text(max_size=3))
    | st.builds(ChatMessageTool, content=TEXT, function=st.none() | TEXT),
    max_size=4,
)


@given(st.lists(MESSAGES, max_size=4), JSON, JSON, st.dictionaries(TEXT, JSON, max_size=3))
def test_a_sample_is_read_as_it_was_written(
    inputs: list[list[ChatMessage]], data: Any, response: Any, metadata: dict[str, Any]
) -> None:
    # given a sample with texts of every length and kind in every place
    events: list[Any] = [
        ModelEvent(model="m", input=messages, call=ModelCall(request={"messages": [data], "n": 1}, response=response))
        for messages in inputs
    ]
    events += [InfoEvent(data=data), StateEvent(changes=[{"op": "add", "path": "/a", "value": data}])]
    events += [
        ToolEvent(id="1", function="f", arguments={"a": data}, result="text"),
        UnknownEvent.model_validate({"event": "newer", "data": data}),
    ]
    events.append(SampleInitEvent(sample={"input": "q", "metadata": metadata}, state={"a": data}))
    retries = [EvalRetryError(message="m", traceback="t", traceback_ansi="a", events=list(events))]
    written = EvalSample(
        id=1, epoch=1, input="q", target="t", metadata=metadata, store=metadata, events=events, error_retries=retries,
        messages=[message for messages in inputs for message in messages],
    )  # fmt: skip
    before = _text(written)
    # when it is encoded and read with all texts put back
    read = parse_sample(encode_sample(written), resolve="full")
    # then nothing is lost, and writing changed nothing
    assert json.loads(_text(read)) == json.loads(before)
    assert _text(written) == before


def test_nothing_is_put_back_unless_asked_for() -> None:
    long = "x" * 200
    raw = encode_sample(sample(question=long))
    event = next(event for event in parse_sample(raw).events if isinstance(event, ModelEvent))
    assert str(event.input[0].content).startswith("attachment://")
    core = parse_sample(raw, resolve="core")
    event = next(event for event in core.events if isinstance(event, ModelEvent))
    assert event.input[0].content == long and event.call is not None
    assert event.call.request["messages"][0]["content"].startswith("attachment://")
    assert list(core.attachments.values()) == [long]  # still needed by the call
    assert parse_sample(raw, resolve="full").attachments == {}


def test_each_text_and_message_stands_once() -> None:
    long = "y" * 5000
    assert encode_sample(sample(question=long)).count(long.encode()) == 3  # input, message, attachment


def test_media_leave_the_messages_and_texts_stay() -> None:
    message = ChatMessageUser(content=[ContentText(text="z" * 300), ContentImage(image=PNG)])
    raw = encode_sample(sample(input=[message], messages=[message]))
    tree = json.loads(raw)
    for found in (tree["input"][0], tree["messages"][0]):
        assert found["content"][0]["text"] == "z" * 300
        assert found["content"][1]["image"].startswith("attachment://")
    assert PNG.encode() not in encode_sample(sample(input=[message], messages=[message]), images=False)


def test_an_unexpanded_pool_is_kept() -> None:
    one = ChatMessageUser(content="one")
    call = ModelCall(call_refs=[(1, 2)], call_key="input")
    shared = EventsData(messages=[one, one, one], calls=[1, 1])
    events: list[Any] = [ModelEvent(model="m", input_refs=[(0, 1), (2, 3)], call=call)]
    written = EvalSample(id=1, epoch=1, input="q", target="t", events_data=shared, events=events)
    (event,) = parse_sample(encode_sample(written)).events
    assert isinstance(event, ModelEvent) and event.call is not None
    assert [message.content for message in event.input] == ["one", "one"]
    assert event.call.request == {"input": [1]}


def test_a_long_conversation_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a count of the messages that are encoded
    encoded: list[Any] = []

    def encode(value: Any) -> bytes:
        encoded.append(value)
        return to_json(value)

    monkeypatch.setattr(_pool, "encode", encode)
    # when a conversation of 200 turns is recorded
    transcript = Transcript()
    messages: list[ChatMessage] = []
    for turn in range(200):
        messages.append(ChatMessageUser(content=f"turn {turn}"))
        transcript.event(ModelEvent(model=MODEL, input=list(messages)))
    # then each message was encoded once, and each event refers to one range
    assert len(encoded) == 200
    raw = json.loads(
        encode_sample(EvalSample(id=1, epoch=1, input="q", target="t").model_copy(update={"events": transcript.events}))
    )
    assert [event["input_refs"] for event in raw["events"]] == [[[0, turn + 1]] for turn in range(200)]
    assert len(encoded) == 200


def test_the_past_does_not_change_with_a_message() -> None:
    # given a conversation whose first message is cut after the first turn, in place
    transcript = Transcript()
    first, second = ChatMessageUser(content="a long document"), ChatMessageUser(content="and?")
    transcript.event(ModelEvent(model=MODEL, input=[first]))
    first.content = "(removed)"
    transcript.event(ModelEvent(model=MODEL, input=[first, second]))
    # when the sample is written
    written = EvalSample(id=1, epoch=1, input="q", target="t").model_copy(update={"events": transcript.events})
    # then each event shows what the model was sent
    seen = [[message.content for message in event.input] for event in parse_sample(encode_sample(written)).events]  # type: ignore[union-attr]
    assert seen == [["a long document"], ["(removed)", "and?"]]


def test_large_messages_are_encoded_when_the_sample_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a message of a megabyte between small ones, and its content replaced after the first turn
    transcript = Transcript()
    image = "data:image/png;base64," + "A" * 1_000_000
    large = ChatMessageUser(content=[ContentText(text="q"), ContentImage(image=image)])
    messages: list[ChatMessage] = [ChatMessageUser(content="a"), large, ChatMessageUser(content="b")]
    encoded: list[Any] = []

    def encode(value: Any) -> bytes:
        encoded.append(value)
        return to_json(value)

    monkeypatch.setattr(_pool, "encode", encode)
    transcript.event(ModelEvent(model=MODEL, input=list(messages)))
    transcript.event(ModelEvent(model=MODEL, input=list(messages)))
    assert len(encoded) == 2  # the small ones
    large.content = "gone"
    transcript.event(ModelEvent(model=MODEL, input=list(messages)))
    # when the sample is written and read, then each event has what was sent
    written = EvalSample(id=1, epoch=1, input="q", target="t").model_copy(update={"events": transcript.events})
    read = parse_sample(encode_sample(written), resolve="full")
    sizes = [[len(str(message.content)) for message in event.input] for event in read.events]  # type: ignore[union-attr]
    assert sizes[0] == sizes[1] and sizes[0][1] > 1_000_000 and sizes[2] == [1, 4, 1]
    assert [len(event.input) for event in parse_sample(encode_sample(written)).events] == [3, 3, 3]  # type: ignore[union-attr, arg-type]


def test_copies_of_a_conversation_are_recorded_once() -> None:
    # given an agent that copies its conversation at each turn, and changes one message of a copy
    transcript = Transcript()
    messages: list[ChatMessage] = [ChatMessageUser(content=f"{number}", id=f"{number}") for number in range(5)]
    for _ in range(3):
        messages = [message.model_copy(deep=True) for message in messages]
        transcript.event(ModelEvent(model=MODEL, input=list(messages)))
    messages[0].metadata = {"seen": True}
    transcript.event(ModelEvent(model=MODEL, input=list(messages)))
    # when the sample is written, then equal messages stand once, and the changed one beside them
    written = EvalSample(id=1, epoch=1, input="q", target="t").model_copy(update={"events": transcript.events})
    tree = json.loads(encode_sample(written))
    assert [event["input_refs"] for event in tree["events"]] == [[[0, 5]], [[0, 5]], [[0, 5]], [[5, 6], [1, 5]]]
    assert len(tree["events_data"]["messages"]) == 6


def test_null_in_a_field_that_readers_demand() -> None:
    raw = json.loads(encode_sample(sample(events=[InfoEvent(data=None), SampleInitEvent(sample={})])))
    assert raw["events"][0]["data"] is None and raw["events"][1]["state"] is None

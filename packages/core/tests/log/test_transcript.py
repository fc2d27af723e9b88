"""Transcripts, spans and stores: what happened, when, and inside what."""

from __future__ import annotations

import copy
import logging
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from proctor.log import (
    Store,
    StoreModel,
    Transcript,
    json_changes,
    span,
    span_id,
    store,
    store_as,
    transcript,
    use_store,
    use_transcript,
)
from proctor.schema import InfoEvent, LoggerEvent, SpanBeginEvent, SpanEndEvent, StoreEvent

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab/~0", max_size=3), inner, max_size=4),
    max_leaves=12,
)


def _kinds(events: Any) -> list[tuple[str, str | None]]:
    return [(event.event, getattr(event, "name", None)) for event in events]


def test_events_are_stamped() -> None:
    record = Transcript(lambda: 1.5)
    with use_transcript(record):
        transcript().info({"a": 1}, source="me")
        transcript().event(InfoEvent(data=2, uuid="given", timestamp="then", working_start=0.0, span_id="x"))
    first, second = record.events
    assert first.uuid and len(first.uuid) == 22 and first.working_start == 1.5 and first.span_id is None
    assert str(first.timestamp).endswith("+00:00") and len(str(first.timestamp)) == 32
    assert (second.uuid, second.timestamp, second.working_start, second.span_id) == ("given", "then", 0.0, "x")


def test_info_is_kept_as_it_was() -> None:
    record, data = Transcript(), {"list": [1], "set": {2}, "object": object()}
    record.info(data)
    data["list"].append(3)  # type: ignore[attr-defined]
    (event,) = record.events
    assert isinstance(event, InfoEvent) and event.data == {"list": [1], "set": [2], "object": None}


def test_outside_a_sample_events_go_nowhere() -> None:
    transcript().info("nothing")
    assert transcript().events == []


def test_spans_nest() -> None:
    record = Transcript()
    with use_transcript(record), span("outer", type="solver") as outer:
        transcript().info(1)
        with span("inner") as inner:
            transcript().info(2)
            assert span_id() == inner.id
        assert span_id() == outer.id
    assert span_id() is None
    begin, one, begin_inner, two, end_inner, end = record.events
    assert isinstance(begin, SpanBeginEvent) and isinstance(begin_inner, SpanBeginEvent)
    assert isinstance(end, SpanEndEvent) and isinstance(end_inner, SpanEndEvent)
    assert (begin.id, begin.span_id, begin.parent_id, begin.type) == (outer.id, outer.id, None, "solver")
    assert (begin_inner.parent_id, one.span_id, two.span_id) == (outer.id, outer.id, inner.id)
    assert (end_inner.id, end.id, end.span_id) == (inner.id, outer.id, outer.id)


def test_a_span_ends_with_an_error_too() -> None:
    record = Transcript()
    with pytest.raises(ZeroDivisionError), use_transcript(record), span("a"):
        _ = 1 / 0
    assert _kinds(record.events) == [("span_begin", "a"), ("span_end", None)]
    assert span_id() is None


@pytest.mark.anyio
async def test_spans_of_tasks_do_not_mix() -> None:
    record = Transcript()

    async def branch(name: str) -> None:
        async with span(name):
            await anyio.lowlevel.checkpoint()
            transcript().info(name)

    with use_transcript(record):
        async with span("all") as outer, anyio.create_task_group() as tasks:
            tasks.start_soon(branch, "left")
            tasks.start_soon(branch, "right")
    begun = {event.id: event for event in record.events if isinstance(event, SpanBeginEvent)}
    for event in record.events:
        if isinstance(event, InfoEvent):
            assert event.span_id is not None and begun[event.span_id].name == event.data
            assert begun[event.span_id].parent_id == outer.id


def test_changes_of_the_store_are_recorded() -> None:
    record = Transcript()
    with use_transcript(record), use_store(Store()):
        with span("one"):
            store().set("list", [1])
        with span("two"):
            store().get("list").append(2)
        with span("three"):
            pass
    changes = [event.changes for event in record.events if isinstance(event, StoreEvent)]
    assert changes == [
        [{"op": "add", "path": "/list", "value": [1]}],
        [{"op": "add", "path": "/list/1", "value": 2}],
    ]


def test_python_logging() -> None:
    record = Transcript()
    record.log_record(logging.LogRecord("name", logging.WARNING, "file.py", 3, "%s!", ("careful",), None))
    (event,) = record.events
    assert isinstance(event, LoggerEvent)
    assert (event.message.level, event.message.message, event.message.lineno) == ("warning", "careful!", 3)
    assert event.message.created > 1e12  # milliseconds


def test_a_store_is_a_dictionary_with_defaults() -> None:
    data = Store({"a": 1})
    assert data.get("a") == 1 and data.get("b") is None and data.get("c", []) == []
    data["c"].append(2)
    data["d"] = 3
    del data["a"]
    data.delete("nothing")
    assert data.to_dict() == {"c": [2], "d": 3} and list(data.keys()) == ["c", "d"] and "a" not in data
    assert data == Store({"c": [2], "d": 3}) and len(data) == 2 and dict(data.items()) == data.to_dict()


class Progress(StoreModel):
    steps: int = 0
    notes: list[str] = []


def test_typed_views_share_the_store() -> None:
    with use_store(Store()) as data:
        store_as(Progress).steps += 2
        store_as(Progress).notes.append("x")
        assert data.to_dict() == {"Progress:steps": 2, "Progress:notes": ["x"]}
        data.set("Progress:steps", 5)
        assert store_as(Progress).steps == 5
        other = store_as(Progress, instance="b")
        other.steps = 1
        assert store_as(Progress).steps == 5 and data["Progress:b:steps"] == 1
        with pytest.raises(ValidationError):
            other.steps = "many"  # type: ignore[assignment]
    with use_store(Store()):
        assert store_as(Progress).notes == []  # defaults are not shared between samples


@given(JSON, JSON)
def test_changes_lead_from_one_value_to_the_other(before: Any, after: Any) -> None:
    assert _applied(copy.deepcopy(before), json_changes(before, after)) == after


def _applied(value: Any, changes: list[dict[str, Any]]) -> Any:
    root = {"": value}
    for change in changes:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in change["path"].split("/")]
        owner: Any = root
        for name in parents:
            owner = owner[int(name)] if isinstance(owner, list) else owner[name]
        if isinstance(owner, list):
            place = int(last)
            if change["op"] == "add":
                owner.insert(place, change["value"])
            elif change["op"] == "remove":
                assert owner.pop(place) == change["replaced"]
            else:
                assert owner[place] == change["replaced"]
                owner[place] = change["value"]
        elif change["op"] == "remove":
            assert owner.pop(last) == change["replaced"]
        else:
            assert (change["op"] == "add") == (last not in owner)
            owner[last] = change["value"]
    return root[""]


def test_events_of_spans_are_like_any_other() -> None:
    # given the events of a span, which are built without pydantic's constructor
    record = Transcript()
    with use_transcript(record), span("a", type="t"):
        pass
    begin, end = record.events
    # when they are built, copied and dumped as others are, then nothing is missing
    assert isinstance(begin, SpanBeginEvent) and isinstance(end, SpanEndEvent)
    for event in (begin, end):
        fields = event.model_dump()
        assert list(fields) == list(type(event).model_fields)
        assert event == type(event)(**fields) == event.model_copy(deep=True)

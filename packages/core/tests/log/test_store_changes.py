"""What spans record of the store: the same as if all of it was kept as JSON, for the price of what has changed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.log import Store, StoreEvent, Transcript, _changes, _fold, json_changes, span, use_store, use_transcript
from proctor.log._fold import Runs, fold, unfold
from proctor.log._json import decode, encode
from proctor.schema import ChatMessageUser

SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-1, 1) | st.sampled_from([float("nan"), float("inf")])
)
VALUES = st.recursive(
    SCALARS | st.text("ab\ud83d\ufffd", max_size=2) | st.sampled_from([(1, 2), ChatMessageUser(content="x", id="i")]),
    lambda inner: (
        st.lists(inner, max_size=9)
        | st.dictionaries(st.text("ab/~0", max_size=2), inner, max_size=9)
        | st.dictionaries(st.integers(0, 3), inner, max_size=3)
    ),
    max_leaves=30,
)


def json_of(value: Any) -> Any:
    return decode(encode(value))


def same(one: Any, other: Any) -> bool:
    """Equal as JSON; NaN is itself, and 1 is not true."""
    return encode(one) == encode(other)


@contextmanager
def taken_apart(run: int, long: int) -> Iterator[None]:
    """With other sizes from which data is taken apart, so that small data is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_fold, "RUN", run)
        patch.setattr(_changes, "RUN", run)
        patch.setattr(_fold, "_LONG", long)
        yield


@pytest.mark.parametrize(("run", "long"), [(64, 1 << 16), (2, 30), (3, 1 << 16), (64, 10)])
@given(st.lists(VALUES, min_size=2, max_size=5))
def test_folded_data_has_the_changes_of_the_whole_data(run: int, long: int, values: list[Any]) -> None:
    with taken_apart(run, long):
        former: Any = {}
        for before, after in zip([{}, *values], values, strict=False):
            # when data is folded, knowing what it was before
            folded = fold(after, former)
            # then it is the data, its changes are those of the data, and it is the same object if there are none
            assert same(unfold(folded), json_of(after))
            assert same(json_changes(former, folded), json_changes(json_of(before), json_of(after)))
            assert fold(copy.deepcopy(after), folded) is folded
            former = folded


EDITS = st.lists(
    st.tuples(st.sampled_from(["set", "delete", "append", "insert", "deep"]), st.integers(0, 40), VALUES), max_size=8
)


@pytest.mark.parametrize(("run", "long"), [(4, 60), (4, 1 << 16)])
@given(st.integers(0, 30), EDITS)
def test_values_that_change_in_place(run: int, long: int, count: int, edits: list[Any]) -> None:
    with taken_apart(run, long):
        data: dict[str, Any] = {"list": list(range(count)), "dict": {str(n): [n] for n in range(count)}}
        folded, whole = fold(data), json_of(data)
        for kind, place, value in edits:
            rows, table = data["list"], data["dict"]
            if kind == "set":
                table[str(place)] = value
            elif kind == "delete":
                table.pop(str(place), None)
                del rows[place : place + 1]
            elif kind == "append":
                rows.append(value)
            elif kind == "insert":
                rows.insert(place, value)
            else:
                table.setdefault("deep", []).append(value)
            now = fold(data, folded)
            assert same(json_changes(folded, now), json_changes(whole, json_of(data)))
            folded, whole = now, json_of(data)


def test_data_that_holds_itself() -> None:
    data: dict[str, Any] = {"many": list(range(200))}
    data["self"] = data
    assert unfold(fold(data))["self"]["many"] == list(range(200))


def _spy(patch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what is encoded and decoded from now on."""
    seen: list[int] = []

    def encoded(value: Any) -> bytes:
        raw = encode(value)
        seen.append(len(raw))
        return raw

    def decoded(raw: bytes) -> Any:
        seen.append(len(raw))
        return decode(raw)

    patch.setattr(_fold, "encode", encoded)
    patch.setattr(_fold, "decode", decoded)
    patch.setattr(_changes, "decode", decoded)
    return seen


def _recorded(data: Store, change: Any) -> Any:
    with use_transcript(Transcript()) as record, use_store(data), span("s"):
        change(data)
    [event] = [event for event in record.events if isinstance(event, StoreEvent)]
    return event.changes


def test_texts_and_numbers_are_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a store with a megabyte of text
    data = Store({"long": "x" * 500_000, "rows": ["y" * 1000] * 500, "count": 1, "seen": {"a": 1.0, "b": None}})
    seen = _spy(monkeypatch)
    # when a span changes something
    changes = _recorded(data, lambda data: data.set("count", 2))
    # then nothing is encoded
    assert changes == [{"op": "replace", "path": "/count", "value": 2, "replaced": 1}] and seen == []


def test_only_what_has_changed_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a megabyte of messages
    rows = [{"role": "user", "content": "word " * 20, "tags": [n]} for n in range(8000)]
    data = Store({"rows": rows})
    seen = _spy(monkeypatch)

    def change(data: Store) -> None:
        seen.clear()  # all of it was looked at when the span began
        data["rows"][4000]["content"] = "short"
        data["rows"].append({"role": "tool", "tags": []})

    # when one of them changes and one more comes
    changes = _recorded(data, change)
    # then a hundredth is decoded
    assert [(one["op"], one["path"]) for one in changes] == [
        ("replace", "/rows/4000/content"),
        ("add", "/rows/8000"),
    ]
    whole = len(encode(rows))
    assert sum(seen) < whole * 1.05 + whole / 20  # encoded once


def test_a_store_that_is_not_changed_is_the_same_object() -> None:
    data = {"a": [{"b": [n]} for n in range(1000)], "c": {"d": {"e": 1}}, "f": {}, "g": [], "h": float("nan")}
    folded = fold(data)
    assert isinstance(folded["a"], Runs)
    assert fold(data, folded) is folded
    data["a"][999]["b"].append(1)  # type: ignore[index]
    again = fold(data, folded)
    assert again is not folded and again["a"].parts[:-1] == folded["a"].parts[:-1] and again["c"] is folded["c"]

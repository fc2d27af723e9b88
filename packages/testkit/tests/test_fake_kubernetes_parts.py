"""The codecs of the fake Kubernetes: frames, patches, selectors and amounts."""

from __future__ import annotations

import asyncio
import os
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor_testkit.kube._errors import ApiError
from proctor_testkit.kube._patch import applied, json_patch, merge_patch, strategic_merge
from proctor_testkit.kube._quantity import quantity, spelled
from proctor_testkit.kube._store import selector
from proctor_testkit.kube._websocket import WebSocket
from proctor_testkit.kube._wire import Connection

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


def masked(opcode: int, data: bytes, *, final: bool) -> bytes:
    """A client's frame, made by the definition (RFC 6455, 5.3), byte by byte."""
    size, mask = len(data), os.urandom(4)
    length = bytes([0x80 | size]) if size < 126 else struct.pack("!BH", 0xFE, size)
    return bytes([(0x80 if final else 0) | opcode]) + length + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data))


@given(st.lists(st.binary(min_size=0, max_size=300), min_size=1, max_size=5))
def test_a_message_is_read_from_its_fragments(parts: list[bytes]) -> None:
    async def read() -> bytes | None:
        reader = asyncio.StreamReader()
        for number, part in enumerate(parts):
            reader.feed_data(masked(0 if number else 2, part, final=number == len(parts) - 1))
        reader.feed_eof()
        socket = WebSocket(Connection(reader, None), "v5.channel.k8s.io")  # type: ignore[arg-type]  # nothing is sent
        message = await socket.receive()
        assert await socket.receive() is None
        return message

    assert asyncio.run(read()) == b"".join(parts)


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_leads_to_what_it_says(before: dict[str, Any], wanted: dict[str, Any]) -> None:
    patched = merge_patch(before, wanted)

    assert merge_patch(patched, wanted) == patched
    assert all(patched.get(key) is None for key, value in wanted.items() if value is None)
    assert all(patched[key] == value for key, value in before.items() if key not in wanted)


@given(OBJECTS, OBJECTS)
def test_what_a_manager_wants_no_more_is_taken_away(first: dict[str, Any], second: dict[str, Any]) -> None:
    made = applied({"e": 1}, {}, first)

    again = applied(made, first, second)

    assert again["e"] == 1
    assert not (set(first) - set(second)) & set(again)


def test_lists_are_merged_by_their_keys() -> None:
    before = {"containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]}
    patch = {
        "containers": [
            {"name": "a", "env": [{"name": "Y", "value": "2"}]},
            {"name": "b", "$patch": "delete"},
            {"name": "c"},
        ],
        "$setElementOrder/containers": [{"name": "a"}, {"name": "c"}],
    }

    after = strategic_merge(before, patch)

    variables = [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]
    assert after == {"containers": [{"name": "a", "image": "1", "env": variables}, {"name": "c"}]}


def test_sets_grow_and_shrink() -> None:
    before = {"finalizers": ["a", "b"]}

    assert strategic_merge(before, {"finalizers": ["b", "c"]}) == {"finalizers": ["a", "b", "c"]}
    assert strategic_merge(before, {"$deleteFromPrimitiveList/finalizers": ["a"]}) == {"finalizers": ["b"]}
    assert strategic_merge({"a": {"x": 1}}, {"a": {"$patch": "replace", "y": 2}}) == {"a": {"y": 2}}


@pytest.mark.parametrize(
    ("step", "after"),
    [
        ({"op": "add", "path": "/list/-", "value": 3}, {"list": [1, 2, 3], "a/b": 1}),
        ({"op": "add", "path": "/list/0", "value": 0}, {"list": [0, 1, 2], "a/b": 1}),
        ({"op": "replace", "path": "/a~1b", "value": 2}, {"list": [1, 2], "a/b": 2}),
        ({"op": "remove", "path": "/list/0"}, {"list": [2], "a/b": 1}),
        ({"op": "move", "from": "/a~1b", "path": "/c"}, {"list": [1, 2], "c": 1}),
        ({"op": "copy", "from": "/list", "path": "/c"}, {"list": [1, 2], "a/b": 1, "c": [1, 2]}),
        ({"op": "test", "path": "/a~1b", "value": 1}, {"list": [1, 2], "a/b": 1}),
    ],
)
def test_a_json_patch_does_its_steps(step: dict[str, Any], after: dict[str, Any]) -> None:
    assert json_patch({"list": [1, 2], "a/b": 1}, [step]) == after


@pytest.mark.parametrize(
    "step",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "replace", "path": "/missing", "value": 2},
        {"op": "remove", "path": "/missing"},
        {"op": "add", "path": "/missing/deep", "value": 2},
    ],
)
def test_a_json_patch_that_cannot_be_done_is_refused(step: dict[str, Any]) -> None:
    before = {"a": 1}

    with pytest.raises(ApiError) as refused:
        json_patch(before, [step])

    assert refused.value.code == 422 and before == {"a": 1}


@pytest.mark.parametrize(
    ("text", "amount"), [("2", 2), ("500m", 0.5), ("1.5Gi", 1.5 * 2**30), ("100M", 1e8), (3, 3), ("250u", 0.00025)]
)
def test_amounts_are_read(text: str | int, amount: float) -> None:
    assert quantity(text) == pytest.approx(amount)


@pytest.mark.parametrize("text", ["", "1Gb", "x", "1 Gi", "MiMi"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        quantity(text)


@given(st.integers(0, 10**9))
def test_amounts_are_spelled(thousandths: int) -> None:
    assert quantity(spelled(thousandths / 1000)) == pytest.approx(thousandths / 1000)


@pytest.mark.parametrize("text", ["a=b=c,", "a in b", "a in (b", "(a)", "=b", "a b", ",", "a,,b"])
def test_selectors_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ApiError):
        selector(text, "")


def test_fields_select() -> None:
    pod = {"metadata": {"name": "a", "namespace": "n"}, "status": {"phase": "Running"}}

    assert selector("", "metadata.name=a,status.phase!=Pending")(pod)
    assert not selector("", "metadata.name==b")(pod)
    assert not selector("", "", "other")(pod)
    with pytest.raises(ApiError):
        selector("", "metadata.name in (a)")

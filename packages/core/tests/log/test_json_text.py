"""JSON as logs have it, and arrays that come in pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.log._json import array_items, decode, encode, visible

ITEMS = st.lists(
    st.recursive(
        st.none() | st.integers() | st.text() | st.text(st.sampled_from('[]{},"\\\ud83d😀é')),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=6,
    ).map(lambda value: [value]),
    max_size=6,
)


@given(ITEMS, st.integers(1, 9))
def test_an_array_in_pieces(items: list[Any], size: int) -> None:
    raw = encode(items)
    pieces = [raw[start : start + size] for start in range(0, len(raw), size)]
    assert list(array_items(pieces)) == items
    with pytest.raises(ValueError, match="early"):
        list(array_items(pieces[:-1] if len(raw) % size == 1 or size == 1 else [raw[:-1]]))


@pytest.mark.parametrize("raw", [b"{}", b"1", b'"["'])
def test_what_is_no_array(raw: bytes) -> None:
    with pytest.raises(ValueError, match="no JSON array"):
        list(array_items([raw]))


@given(ITEMS)
def test_any_text_is_read_back(items: list[Any]) -> None:
    assert decode(encode(items)) == items == json.loads(encode(items))


@given(st.text(st.sampled_from('\\ud8\ud83d\ude00😀3"é')))
def test_lone_surrogates_are_shown_as_text(text: str) -> None:
    expected = "".join(char if not 0xD800 <= ord(char) < 0xE000 else f"\\u{ord(char):04x}" for char in _paired(text))
    assert json.loads(visible(encode(text))) == expected


def _paired(text: str) -> str:
    """Two surrogates that stand beside each other are one character in JSON."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


class _Odd:
    pass


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": _Odd()}, {"a": None}),
        ({1: {2}, None: 3}, {"1": [2], "None": 3}),
        ({"a": b"\xff"}, {"a": "\ufffd"}),
        ({"a": ("x", b"y")}, {"a": ["x", "y"]}),
        ({"\ud83d": _Odd(), "b": {1}}, {"\ud83d": None, "b": [1]}),
    ],
)
def test_odd_values(value: Any, expected: Any) -> None:
    assert json.loads(encode(value)) == expected


def test_circular_data_is_cut() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    assert encode(loop).startswith(b"[1,[1,")

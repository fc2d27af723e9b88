"""Arguments given as text become what the component's dataclass says."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.contracts import DisplayProvider, ModelProvider, UsageError
from proctor.plugins import build_args, component_spec, describe_args
from proctor.plugins._convert import convert, split_commas


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Args:
    """Arguments of Acme.

    Attributes:
        region: where it runs,
            in one word.
        limit: how many.
    """

    region: str = "north"
    limit: int = 3
    api_key: int | None = None
    tags: list[str] = field(default_factory=list)
    depth: float = field(default=0.5, metadata={"help": "how deep"})

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise ValueError("limit is negative")


@dataclass
class Needy:
    path: Path


def _record(args: type | None) -> DisplayProvider:
    return DisplayProvider(name="acme", factory=lambda args: None, args=args)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (str, "x", "x"),
        (str, 7, "7"),
        (int, "12", 12),
        (int, "1e3", 1000),
        (int, 5.0, 5),
        (float, "0.05", 0.05),
        (float, 2, 2.0),
        (bool, "true", True),
        (bool, "Off", False),
        (bool, 1, True),
        (Path, "a/b", Path("a/b")),
        (Color, "red", Color.RED),
        (Color, "BLUE", Color.BLUE),
        (Color, Color.RED, Color.RED),
        (Literal["a", 3], "3", 3),
        (Literal["a", 3], "a", "a"),
        (int | None, "none", None),
        (int | None, "4", 4),
        (Optional[float], None, None),  # noqa: UP045  # both spellings must work
        (str | int, "4", 4),
        (str | list[str], ["a"], ["a"]),
        (list[int], "1,2, 3", [1, 2, 3]),
        (list[int], "[1, 2]", [1, 2]),
        (list[str], "one", ["one"]),
        (list[str], 5, ["5"]),
        (tuple[int, ...], "1,2", (1, 2)),
        (tuple[int, str], "1,a", (1, "a")),
        (Sequence[float], "1", [1.0]),
        (set[str], "a,b,a", {"a", "b"}),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (dict[str, int], {"a": "1"}, {"a": 1}),
        (Mapping[str, Any], '{"a": [1]}', {"a": [1]}),
        (Annotated[int, "note"], "8", 8),
        (Any, "x", "x"),
        (Any, 5, 5),
        (list, "a,b", ["a", "b"]),
    ],
)
def test_a_value_becomes_what_the_hint_says(hint: Any, value: Any, expected: Any) -> None:
    assert convert(value, hint) == expected
    assert type(convert(value, hint)) is type(expected)


@pytest.mark.parametrize(
    ("hint", "value", "text"),
    [
        (int, "x", "a whole number"),
        (int, "1.5", "a whole number"),
        (int, True, "a whole number"),
        (float, "fast", "a number"),
        (float, True, "a number"),
        (bool, "maybe", "true or false"),
        (str, ["a"], "text"),
        (Literal["a", "b"], "c", "one of 'a', 'b'"),
        (Color, "green", "one of 'red', 'blue'"),
        (int | None, "x", "a whole number or none"),
        (list[int], "1,x", "a whole number"),
        (list[int], "[1,", "JSON"),
        (tuple[int, int], "1", "a list"),
        (dict[str, int], "a", "a JSON object"),
        (Callable[[], int], "f", "from Python only"),
        (Args, "x", "a Args (from Python only)"),
    ],
)
def test_a_value_that_does_not_fit_says_what_would(hint: Any, value: Any, text: str) -> None:
    with pytest.raises(ValueError) as raised:
        convert(value, hint)

    assert text in str(raised.value)


def test_a_function_can_be_given_from_python() -> None:
    assert convert(len, Callable[[str], int]) is len


@given(st.integers())
def test_whole_numbers_survive_their_text(value: int) -> None:
    assert convert(str(value), int) == value


@given(st.floats(allow_nan=False))
def test_numbers_survive_their_text(value: float) -> None:
    assert convert(repr(value), float) == value


@given(st.text())
def test_any_text_converts_or_is_refused(text: str) -> None:
    for hint in (int, float, bool, list[int], dict[str, int], Color, int | None):
        with contextlib.suppress(ValueError):
            convert(text, hint)


@given(st.lists(st.text(st.characters(exclude_characters=',"[]{}()', exclude_categories=["Z", "C"]), min_size=1)))
def test_lists_survive_their_text(parts: list[str]) -> None:
    assert split_commas(",".join(parts)) == parts


def test_arguments_are_built_from_text() -> None:
    args = build_args(_record(Args), {"region": "south", "limit": "7", "tags": "a,b", "depth": 1})

    assert args == Args("south", 7, None, ["a", "b"], 1.0)


def test_a_dash_in_a_name_is_an_underscore() -> None:
    assert build_args(_record(Args), {"api-key": "1"}).api_key == 1


def test_no_arguments_give_the_defaults() -> None:
    assert build_args(_record(Args), {}) == Args()
    assert build_args(_record(None), {}) is None


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"limt": "1"}, "-M limt=...: 'acme' has no argument 'limt'. Did you mean 'limit'? Known: region, limit, "),
        ({"zzz": "1"}, "Known: api_key, depth, limit, region, tags."),
        ({"limit": "many"}, "limit of 'acme' must be a whole number, not 'many'."),
        ({"limit": "-1"}, "does not accept its arguments: limit is negative"),
    ],
)
def test_a_mistake_says_what_would_do(given: dict[str, str], text: str) -> None:
    with pytest.raises(UsageError) as raised:
        build_args(_record(Args), given)

    assert text in str(raised.value)


def test_the_value_of_a_secret_is_not_shown() -> None:
    with pytest.raises(UsageError) as raised:
        build_args(_record(Args), {"api_key": "hunter2"})

    assert "hunter2" not in str(raised.value)


def test_arguments_for_what_takes_none_are_refused() -> None:
    with pytest.raises(UsageError, match="'acme' takes no arguments"):
        build_args(_record(None), {"a": "1"}, flag="--display acme:")


def test_a_missing_argument_is_told() -> None:
    with pytest.raises(UsageError, match=r"needs path: give it with -M path=\.\.\."):
        build_args(_record(Needy), {})


def test_arguments_are_described_by_metadata_or_docstring() -> None:
    described = {arg.name: arg for arg in describe_args(_record(Args))}

    assert described["region"].help == "where it runs, in one word."
    assert described["limit"].type == "a whole number"
    assert described["limit"].default == "3"
    assert described["depth"].help == "how deep"
    assert described["tags"].default == "[]"
    assert describe_args(_record(Needy))[0].default is None
    assert describe_args(_record(None)) == []


def test_records_of_every_kind_will_do() -> None:
    record = ModelProvider(name="acme", factory=lambda name, **settings: None, args=Args)  # type: ignore[arg-type]

    assert build_args(record, {"limit": "2"}).limit == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rich", ("rich", {})),
        ("mlflow:uri=http://x:5000,experiment=e", ("mlflow", {"uri": "http://x:5000", "experiment": "e"})),
        ("a:list=[1,2],x=", ("a", {"list": "[1,2]", "x": ""})),
        ('a:text="b,c"', ("a", {"text": '"b,c"'})),
    ],
)
def test_a_component_is_named_with_its_options(text: str, expected: tuple[str, dict[str, str]]) -> None:
    assert component_spec(text) == expected


def test_an_option_without_a_value_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'quick' is no option\. Write acme:name=value"):
        component_spec("acme:quick")

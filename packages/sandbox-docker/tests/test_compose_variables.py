"""Variables in compose files, sizes, times and command lines."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor_sandbox_docker.compose import (
    InterpolationError,
    MissingVariableError,
    interpolate,
    parse_env,
    read_bytes,
    read_command,
    read_seconds,
)

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_characters="${}", codec="utf-8"), max_size=12)
KNOWN = {"SET": "value", "EMPTY": "", "OTHER": "other"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("$SET", "value"),
        ("${SET}", "value"),
        ("a-$SET-b", "a-value-b"),
        ("${SET}${OTHER}", "valueother"),
        ("${EMPTY}", ""),
        ("${UNSET:-default}", "default"),
        ("${UNSET-default}", "default"),
        ("${EMPTY:-default}", "default"),
        ("${EMPTY-default}", ""),
        ("${SET:-default}", "value"),
        ("${UNSET:-}", ""),
        ("${UNSET:-${OTHER}}", "other"),
        ("${UNSET:-${ALSO:-${SET}}/x}", "value/x"),
        ("${SET:-${NOT_LOOKED_AT}}", "value"),
        ("${SET:+replaced}", "replaced"),
        ("${EMPTY:+replaced}", ""),
        ("${EMPTY+replaced}", "replaced"),
        ("${UNSET+replaced}", ""),
        ("${SET:?must be set}", "value"),
        ("${EMPTY?must be set}", ""),
        ("$$SET", "$SET"),
        ("$$$SET", "$value"),
        ("costs 5$$", "costs 5$"),
        ("${UNSET:-5$$}", "5$"),
        ("${SAMPLE_METADATA_FOO-BAR}", "BAR"),
    ],
)
def test_variables_are_replaced(text: str, expected: str) -> None:
    assert interpolate(text, KNOWN) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${UNSET}", "the variable UNSET is not set"),
        ("$UNSET", "the variable UNSET is not set"),
        ("${UNSET:?tell me}", "the variable UNSET is not set: tell me"),
        ("${EMPTY:?tell me}", "the variable EMPTY is not set: tell me"),
        ("${UNSET:-$ALSO}", "the variable ALSO is not set"),
    ],
)
def test_a_variable_that_is_missing_is_named(text: str, said: str) -> None:
    with pytest.raises(MissingVariableError) as caught:
        interpolate(text, KNOWN)
    assert str(caught.value) == said


@pytest.mark.parametrize("text", ["$", "a $ b", "$1", "${", "${}", "${1}", "${SET", "${SET x}", "${SET:x}", "${A:-x"])
def test_a_dollar_that_starts_nothing_is_refused(text: str) -> None:
    with pytest.raises(InterpolationError):
        interpolate(text, KNOWN)


@given(st.lists(st.one_of(TEXTS, NAMES.map(lambda name: f"${{{name}}}"), st.just("$$"))), NAMES, TEXTS)
def test_what_is_replaced_is_what_stands_there_part_by_part(parts: list[str], name: str, value: str) -> None:
    def lookup(wanted: str) -> str:
        return value if wanted == name else f"<{wanted}>"

    def expected(part: str) -> str:
        if part == "$$":
            return "$"
        return lookup(part[2:-1]) if part.startswith("${") else part

    assert interpolate("".join(parts), lookup) == "".join(map(expected, parts))


@given(st.text())
def test_a_text_whose_dollars_are_doubled_stays_as_it_was(text: str) -> None:
    assert interpolate(text.replace("$", "$$"), {}) == text


@given(NAMES, TEXTS, st.none() | TEXTS)
def test_a_default_holds_for_what_is_not_set(name: str, default: str, value: str | None) -> None:
    known = {} if value is None else {name: value}
    assert interpolate(f"${{{name}:-{default}}}", known) == (value or default)
    assert interpolate(f"${{{name}-{default}}}", known) == (default if value is None else value)


@given(st.text())
def test_any_text_is_replaced_or_refused(text: str) -> None:
    try:
        interpolate(text, KNOWN)
    except InterpolationError:
        assert "$" in text


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=8), max_size=6))
def test_a_command_line_is_split_where_a_shell_would(words: list[str]) -> None:
    assert read_command(shlex.join(words)) == words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tail -f /dev/null", ["tail", "-f", "/dev/null"]),
        ("sh -c 'echo \"a b\" > /x'", ["sh", "-c", 'echo "a b" > /x']),
        ('/bin/sh -c "tail -f /dev/null"', ["/bin/sh", "-c", "tail -f /dev/null"]),
        (r"echo a\ b", ["echo", "a b"]),
        ("echo a && echo $HOME # c", ["echo", "a", "&&", "echo", "$HOME", "#", "c"]),
        ("", []),
    ],
)
def test_command_lines_of_compose_files(line: str, words: list[str]) -> None:
    assert read_command(line) == words


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512m", 512 * 1024**2),
        ("0.5gb", 512 * 1024**2),
        ("1g", 1024**3),
        ("2GiB", 2 * 1024**3),
        ("64k", 64 * 1024),
        ("100", 100),
        ("100b", 100),
        (4096, 4096),
    ],
)
def test_sizes_are_powers_of_1024(text: str | int, size: int) -> None:
    assert read_bytes(text) == size


@pytest.mark.parametrize("text", ["", "g", "1x", "-1", "1 g b", "1e3"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        read_bytes(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("1m30s", 90), ("500ms", 0.5), ("1h", 3600), ("1.5m", 90), ("250us", 0.00025), ("5", 5), (7, 7)],
)
def test_durations_are_seconds(text: str | int, seconds: float) -> None:
    assert read_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "1x", "1m 30s", "-1s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        read_seconds(text)


def test_a_file_of_variables_is_read_as_compose_reads_it() -> None:
    # Given comments, quotes, an export, a variable of the file itself and one of the run
    text = """\
# a comment
PLAIN=one two   # the end
export NAME = x
SINGLE='a $NOT #b'
DOUBLE="line\\n$PLAIN \\$5"
FROM_RUN=${RUN}/y
PASSED
ABSENT
EMPTY=
"""
    # When it is read
    found = parse_env(text, {"RUN": "here", "PASSED": "through"}.get)
    # Then
    assert found == {
        "PLAIN": "one two",
        "NAME": "x",
        "SINGLE": "a $NOT #b",
        "DOUBLE": "line\none two $5",
        "FROM_RUN": "here/y",
        "PASSED": "through",
        "EMPTY": "",
    }

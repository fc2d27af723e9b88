"""The screen of a terminal: one frame that is drawn over, at every width, through resizes and prints of task code."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import pytest
from display_snapshots import UNIT, at, finished
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from terminal_emulator import Terminal

from proctor.display import (
    PlainDisplay,
    RichDisplay,
    RunSnapshot,
    SampleSnapshot,
    UnitSnapshot,
    default_display,
    report_text,
    rich_display,
)

TALL = 300  # rows: what scrolled out of a window can't be drawn over by anybody


class Clock:
    """A clock that each look moves on by ``step`` seconds."""

    def __init__(self, step: float = 1.0) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class Screen:
    """A display on an emulated terminal."""

    def __init__(self, width: int = 80, height: int = 24, clock: Clock | None = None) -> None:
        self._stream = io.StringIO()
        self.console = Console(
            file=self._stream, force_terminal=True, width=width, height=height, highlight=False, legacy_windows=False
        )
        self.terminal = Terminal(width, height)
        self.display = RichDisplay(self.console, clock or Clock())

    def resize(self, width: int, height: int = 24) -> None:
        self.text()
        self.console.size = (width, height)
        self.terminal.resize(width, height)

    def text(self) -> str:
        self.terminal.feed(self._stream.getvalue())
        self._stream.seek(0)
        self._stream.truncate()
        assert self.terminal.unknown == []
        return self.terminal.text


class Tty(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@contextmanager
def terminal_streams(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tty]:
    """Standard output and error are a terminal. Not a fixture: pytest puts its own streams back before the test."""
    stream = Tty()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        patch.setattr(sys, "stderr", stream)
        patch.setenv("TERM", "xterm-256color")
        yield stream


def test_the_frame_shows_progress_score_time_left_gates_tokens_and_errors() -> None:
    screen = Screen(width=110)
    screen.display.start(at(0, replace(UNIT, done=0)))
    screen.display.update(at(10, UNIT))
    text = screen.text()
    lines = text.splitlines()
    assert lines[0].startswith("quiz  mock/model")
    for part in ("10/50", "accuracy 0.600", "0:40 left", "3 errors", "━"):
        assert part in lines[0]
    assert lines[1] == ("0:10 · openai 37/40 (+3 waiting) · subprocesses 2/2 · tokens 12.3k in, 678 out · 3 retries")
    assert lines[2] == "errors: TimeoutError 2, ValueError 1"
    assert len(lines) == 3


def test_why_nothing_moves_has_a_line_of_its_own() -> None:
    screen = Screen(width=70)
    dead = replace(UNIT, errors={}, retries=12, retry_cause="connection refused: http://127.0.0.1:9/v1")
    screen.display.start(at(0, dead, replace(dead, model="mock/b", retries=1)))
    lines = screen.text().splitlines()
    assert lines[-1] == "13 retries (connection refused: http://127.0.0.1:9/v1)"
    assert "retries" not in lines[-2]


def test_a_full_disk_is_shown_while_it_is_full() -> None:
    screen = Screen(width=70)
    screen.display.start(at(0, replace(UNIT, errors={}, retries=0, stalled="no space left for logs/a.eval")))
    assert screen.text().splitlines()[-1] == "waits: no space left for logs/a.eval"
    screen.display.update(at(1, replace(UNIT, errors={}, retries=0)))
    assert "no space" not in screen.text()


def test_a_long_reason_keeps_its_end() -> None:
    screen = Screen(width=60)
    cause = "ConnectionFailed: no answer from 127.0.0.1: ClientConnectorError: Cannot connect: Connection refused"
    screen.display.start(at(0, replace(UNIT, errors={}, retry_cause=cause)))
    assert screen.text().splitlines()[-1].startswith("3 retries (Connect")
    assert screen.text().splitlines()[-1].endswith("Connection refused)")


def test_an_error_of_the_commonest_kind_is_shown_with_its_place() -> None:
    screen = Screen(width=60)
    examples = {"ValueError": "quiz.py:3: ValueError('b')", "TimeoutError": "quiz.py:12: TimeoutError('" + "a" * 80}
    screen.display.start(at(0, replace(UNIT, error_examples=examples, retried=2)))
    lines = screen.text().splitlines()
    assert lines[-2] == "errors: TimeoutError 2, ValueError 1 · 2 samples run again"
    assert lines[-1].startswith("  quiz.py:12: TimeoutError('aaa")
    screen.resize(120)
    screen.display.update(at(1, replace(UNIT, errors={}, retried=1)))
    assert screen.text().splitlines()[-1] == "1 sample run again"


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize(
    ("changes", "telling"),
    [
        ([{"model": "openai/gpt-5"}, {"model": "openai/gpt-5-mini"}], ["/gpt-5 ", "5-mini"]),
        ([{"label": "temperature=0.2"}, {"label": "temperature=0.4"}], ["=0.2", "=0.4"]),
        ([{"name": "history"}, {"name": "law"}], ["history", "law"]),
    ],
)
def test_at_every_width_rows_show_what_tells_them_apart(
    width: int, changes: list[dict[str, str]], telling: list[str]
) -> None:
    screen = Screen(width=width)
    common = replace(UNIT, name="a_task_with_a_long_name", model="openai/a-model-with-a-long-name")
    screen.display.start(at(0, *(replace(common, **change) for change in changes)))
    for line, text in zip(screen.text().splitlines(), telling, strict=False):
        assert text in line
        assert "10/50" in line


def test_a_single_unit_has_its_model_where_there_is_room() -> None:
    screen = Screen(width=80)
    screen.display.start(at(0))
    assert screen.text().startswith("quiz  mock/model  10/50")


def test_several_units_end_in_a_table() -> None:
    screen = Screen(width=120, height=TALL)
    units = [replace(finished(), label=f"temperature={t}") for t in (0.2, 0.4)]
    screen.display.start(at(0, *units))
    screen.display.finish(at(62, *units), 0)
    assert "".join(screen.text().split()) == "".join("".join(report_text(units)).split())


@pytest.mark.parametrize("width", [8, 20, 44, 60, 80, 120, 250])
def test_every_width_holds_one_frame_and_then_only_the_report(width: int) -> None:
    screen = Screen(width=width)
    units = [UNIT, replace(UNIT, name="a_task_with_a_long_name_" * 3, model="openai/long-" * 9), UnitSnapshot("w", "m")]
    screen.display.start(at(0, *units))
    for second in range(1, 30):
        screen.display.update(at(second, *[replace(unit, done=second) for unit in units]))
    frame = screen.text().splitlines()
    assert len(frame) == 5
    assert all(len(line) < width for line in frame)
    screen.display.finish(at(62, finished()), 0)
    shown = screen.text()
    assert "".join(shown.split()) == "".join("".join(report_text([finished()])).split())


@pytest.mark.parametrize("width", [30, 40, 50, 60, 70, 80])
def test_no_number_of_the_table_is_broken(width: int) -> None:
    screen = Screen(width=width, height=TALL)
    units = [replace(finished(), label=f"temperature={t}") for t in (0.2, 0.4)]
    screen.display.start(at(0, *units))
    screen.display.finish(at(62, *units), 0)
    _, heading, table = screen.text().rpartition("status")
    if heading:
        assert [score.split()[0] for score in table.split("accuracy ")[1:]] == ["0.617", "0.617"]
        assert ("47/50 partial" in table) == ("scored" in table)
    assert bool(heading) == (width >= 60)


@pytest.mark.parametrize("width", [64, 80, 100, 160])
def test_long_scores_and_long_names_share_the_row(width: int) -> None:
    metrics = tuple((f"{scorer}/{name}", 0.5) for scorer in ("match", "includes") for name in ("accuracy", "stderr"))
    units = [replace(UNIT, name="arithmetic", metrics=metrics), replace(UNIT, name="b" * 70, model="openai/gpt-5")]
    screen = Screen(width=width)
    screen.display.start(at(0, *units))
    first, second, *_ = screen.text().splitlines()
    assert first.startswith("arithmetic")
    assert second.startswith("bbb")
    assert "gpt-5" in second
    assert "match/accur" in first
    assert "stderr" not in first
    assert "10/50" in first
    if width >= 160:
        assert "includes/accuracy 0.500" in first


def test_a_path_is_never_broken_by_us() -> None:
    screen = Screen(width=30)
    screen.display.start(at(0))
    screen.display.finish(at(1, finished()), 0)
    screen.resize(200)
    assert f"log            {finished().location}" in screen.text()


@given(st.lists(st.tuples(st.integers(12, 140), st.integers(1, 6)), min_size=1, max_size=12))
def test_a_window_that_is_resized_again_and_again_leaves_nothing_behind(sizes: list[tuple[int, int]]) -> None:
    screen = Screen(width=100, height=TALL)
    screen.display.start(at(0))
    for second, (width, units) in enumerate(sizes):
        screen.resize(width, TALL)
        screen.display.update(at(second, *[replace(UNIT, name=f"quiz{n}") for n in range(units)]))
    screen.resize(200, TALL)
    screen.display.finish(at(62, finished()), 0)
    assert screen.text().splitlines() == report_text([finished()])


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 12)), min_size=1, max_size=6))
def test_no_size_is_too_small_to_draw_in(sizes: list[tuple[int, int]]) -> None:
    screen = Screen()
    screen.display.start(at(0))
    for second, (width, height) in enumerate(sizes):
        screen.resize(width, height)
        screen.display.update(at(second, *[UNIT] * 20))
    screen.display.finish(at(62, finished()), 0)
    assert screen.text()


def test_more_units_than_rows_are_counted_and_the_running_ones_stay() -> None:
    screen = Screen(width=100, height=12)
    units = [replace(UNIT, name=f"done{n}", status="done") for n in range(30)]
    units += [replace(UNIT, name=f"run{n}") for n in range(4)]
    screen.display.start(at(0, *units))
    text = screen.text()
    assert len(text.splitlines()) < 12
    assert all(f"run{n}" in text for n in range(4))
    assert "and 28 done" in text


def test_it_draws_ten_times_a_second_at_most() -> None:
    clock = Clock(step=0.0)
    screen = Screen(clock=clock)
    screen.display.start(at(0))
    screen.display.update(at(0.05, replace(UNIT, done=11)))
    assert "10/50" in screen.text()
    clock.now = 0.11
    screen.display.update(at(0.11, replace(UNIT, done=12)))
    assert "12/50" in screen.text()


def test_what_looks_like_markup_is_text() -> None:
    screen = Screen(width=120)
    unit = replace(UNIT, name="[bold]x[/nope]", metrics=(("f1[astro]", 0.5),), error="[red]e[/red]", status="error")
    screen.display.start(at(0, unit))
    text = screen.text()
    assert "[bold]x[/nope]" in text
    assert "f1[astro] 0.500" in text
    screen.display.message("see [link]docs[/link]", "warning")
    screen.display.finish(at(1, unit), 1)
    assert "warning: see [link]docs[/link]" in screen.text()
    assert "[red]e[/red]" in screen.text()


def test_a_message_stays_above_the_frame() -> None:
    screen = Screen()
    screen.display.start(at(0))
    screen.display.message("model code runs unconfined", "warning")
    screen.display.update(at(1))
    lines = screen.text().splitlines()
    assert lines[0] == "warning: model code runs unconfined"
    assert lines[1].startswith("quiz")
    screen.display.finish(at(2, finished()), 0)
    assert screen.text().splitlines()[:2] == ["warning: model code runs unconfined", report_text([finished()])[0]]


def test_what_samples_wait_for_has_the_room_that_is_left_while_it_is_wanted() -> None:
    screen = Screen(width=90, height=12)
    samples = tuple(
        SampleSnapshot(str(n), 1 if n > 1 else 2, ((70.0 - n, "waits for my-api"), (1.0, "tool bash")))
        for n in range(1, 40)
    )
    screen.display.start(at(0))
    screen.display.update(replace(at(1), samples=samples))
    text = screen.text()
    lines = text.splitlines()
    assert len(lines) <= 12
    assert "39 unfinished samples, the longest wait first (Ctrl-\\ hides them)" in text
    assert any(line.split() == ["1", "(epoch", "2)", "1:09", "waits", "for", "my-api"] for line in lines)
    assert any(line.split() == ["0:01", "tool", "bash"] for line in lines)
    screen.display.update(at(2))
    assert "unfinished" not in screen.text()


def test_what_task_code_prints_stands_above_the_frame_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(width=100)
    with terminal_streams(monkeypatch) as stream:
        display = RichDisplay(Console(force_terminal=True, width=100, height=24, legacy_windows=False), Clock())
        display.start(at(0))
        print("first")
        print("second", end="")
        sys.stderr.write(" half\n")
        display.update(at(1))
        display.finish(at(2, finished()), 0)
        print("after")
        assert sys.stdout is stream
    terminal.feed(stream.getvalue())
    lines = terminal.text.splitlines()
    assert lines[0] == "first"
    assert sorted(lines[1:3]) == [" half", "second"]
    assert lines[3] == report_text([finished()])[0]
    assert lines[-1] == "after"


def test_a_fault_while_drawing_holds_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal_streams(monkeypatch) as stream:
        display = RichDisplay(Console(force_terminal=True, width=100, height=24, legacy_windows=False), Clock())
        display.start(at(0))
        print("printed")
        with pytest.raises(ValueError, match="Cannot specify"):
            display.update(at(1, replace(UNIT, done=cast(int, "many"))))
        assert sys.stdout is stream
        assert stream.getvalue().endswith("printed\n")


def test_no_color_is_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = io.StringIO()
    display = RichDisplay(Console(file=stream, force_terminal=True, width=100, height=24), Clock())
    display.start(at(0))
    display.update(at(1))
    display.finish(at(2, finished()), 0)
    assert "\x1b[3" not in stream.getvalue().replace("\x1b[0m", "")
    assert "38;5" not in stream.getvalue()


def test_rich_is_the_default_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal_streams(monkeypatch):
        assert default_display() == "rich"
        assert isinstance(rich_display(), RichDisplay)
        for name, value in (("TERM", "dumb"), ("TERM", "unknown")):
            monkeypatch.setenv(name, value)
            assert default_display() == "plain"
            assert isinstance(rich_display(), PlainDisplay)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(Tty, "encoding", "ascii")
        assert default_display() == "plain"
    assert default_display(io.StringIO()) == "plain"


def test_an_empty_run_is_drawn_and_ended() -> None:
    screen = Screen()
    screen.display.start(RunSnapshot())
    screen.display.update(RunSnapshot(elapsed=1))
    screen.display.finish(RunSnapshot(elapsed=2), 0)
    assert screen.text() == ""

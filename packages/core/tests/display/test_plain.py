"""The plain screen: lines that are few, whole and readable in whatever the pipe takes."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from display_snapshots import UNIT, at, finished

from proctor.display import GateSnapshot, NoneDisplay, PlainDisplay, SampleSnapshot, UnitSnapshot


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def test_a_line_every_few_seconds_of_the_run_and_no_more(stream: io.StringIO) -> None:
    display = PlainDisplay(stream, interval=5)
    display.start(at(0, replace(UNIT, done=0, errors={}, metrics=())))
    for tenth in range(1, 121):
        display.update(at(tenth / 10, replace(UNIT, done=tenth // 10)))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "quiz · mock/model · 50 samples"
    assert len(lines) == 3
    assert lines[1] == (
        "[0:05] quiz · 5/50 10% · accuracy 0.600 · 3 errors (TimeoutError 2, ValueError 1) · 3 retries · 1/s · "
        "0:45 left · openai 37/40 (+3 waiting) · subprocesses 2/2"
    )


def test_a_unit_that_ends_is_told_at_once_and_once(stream: io.StringIO) -> None:
    display = PlainDisplay(stream, interval=100)
    other = replace(UNIT, name="other", model="mock/b", status="error")
    display.start(at(0, UNIT, UNIT))
    display.update(at(1, UNIT, other))
    display.update(at(2, UNIT, other))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "2 units · 100 samples"
    assert len(lines) == 2
    assert lines[1].startswith("[0:01] other (mock/b) · 10/50 20% · failed · accuracy 0.600")


def test_a_full_disk_is_told_when_it_begins_and_when_it_ends(stream: io.StringIO) -> None:
    display = PlainDisplay(stream, interval=100)
    full = replace(UNIT, errors={}, stalled="no space left for logs/a.eval")
    display.start(at(0, UNIT))
    for second, unit in enumerate((full, full, replace(UNIT, errors={})), start=1):
        display.update(at(second, unit))
    assert stream.getvalue().splitlines()[1:] == [
        "[0:01] quiz · waits: no space left for logs/a.eval",
        "[0:03] quiz · goes on",
    ]


def test_many_running_units_share_a_line(stream: io.StringIO) -> None:
    display = PlainDisplay(stream, interval=5)
    units = [replace(UNIT, name=f"quiz{n}") for n in range(8)] + [UnitSnapshot("late", "m", total=5)]
    display.start(at(0, *units))
    display.update(at(6, *units))
    assert stream.getvalue().splitlines()[1] == (
        "[0:06] 9 units · 8 running, 1 waiting · 80 samples done · 24 errors (TimeoutError 16, ValueError 8) · "
        "24 retries · openai 37/40 (+3 waiting) · subprocesses 2/2"
    )


def test_a_server_that_does_not_answer_is_named_with_its_reason(stream: io.StringIO) -> None:
    display = PlainDisplay(stream, interval=5)
    dead = replace(UNIT, done=0, errors={}, metrics=(), retries=12, retry_cause="connection refused:\n http://x/v1")
    display.start(at(0, dead))
    display.update(at(5, dead))
    assert "0/50 0% · 12 retries (connection refused: http://x/v1)" in stream.getvalue()


def test_the_first_error_of_a_kind_is_told_with_its_place_at_once_and_once(stream: io.StringIO) -> None:
    display = PlainDisplay(stream, interval=100)
    unit = replace(UNIT, error_examples={"ValueError": "quiz.py:12: ValueError('no answer')"})
    display.start(at(0))
    display.update(at(1, unit))
    display.update(at(2, unit))
    assert stream.getvalue().splitlines()[1:] == ["[0:01] quiz · first ValueError: quiz.py:12: ValueError('no answer')"]


def test_units_of_a_sweep_are_told_apart_and_gates_have_a_line(stream: io.StringIO) -> None:
    display = PlainDisplay(stream, interval=5)
    units = [replace(UNIT, label=f"temperature={t}", retried=1) for t in (0.2, 0.4)]
    display.start(at(0, *units))
    display.update(at(5, *units))
    lines = stream.getvalue().splitlines()
    assert lines[1].startswith("[0:05] quiz temperature=0.2 (mock/model) · 10/50 20% · ")
    assert "1 sample run again" in lines[1]
    assert lines[2].startswith("[0:05] quiz temperature=0.4 (mock/model)")
    assert lines[3] == "[0:05] all · openai 37/40 (+3 waiting) · subprocesses 2/2"


def test_a_limit_that_moves_shows_which_way_it_went(stream: io.StringIO) -> None:
    display = PlainDisplay(stream, interval=1)
    for second, limit in enumerate((20, 40, 40, 36)):
        display.update(replace(at(second), gates=(GateSnapshot("openai", 20, limit),)))
    assert [line.rpartition(" · ")[2] for line in stream.getvalue().splitlines()] == [
        "openai 20/40↑",
        "openai 20/40↑",
        "openai 20/36↓",
    ]


def test_an_unknown_number_of_samples_is_said_to_be_unknown(stream: io.StringIO) -> None:
    display = PlainDisplay(stream, interval=1)
    unit = replace(UNIT, total=None)
    display.start(at(0, unit))
    display.update(at(2, unit))
    assert stream.getvalue().splitlines()[0].endswith("samples of unknown number")
    assert "10 done" in stream.getvalue()


def test_what_samples_wait_for_is_listed_when_somebody_asks(stream: io.StringIO) -> None:
    display = PlainDisplay(stream, interval=100)
    display.start(at(0))
    samples = tuple(SampleSnapshot(f"quiz {n}", 1, ((7.0, "tool bash"), (1.0, "subprocess: ls"))) for n in range(30))
    display.update(replace(at(7), samples=samples))
    display.update(at(8))
    lines = stream.getvalue().splitlines()
    start = lines.index("[0:07] 30 unfinished samples")
    assert lines[start + 1] == "  quiz 0 (epoch 1): 0:07 tool bash; 0:01 subprocess: ls"
    assert lines[start + 21 :] == ["  and 10 more: see `proctor status --all`", *lines[start + 22 :]]
    assert len([line for line in lines if "tool bash" in line]) == 20


def test_the_end_is_the_report(stream: io.StringIO) -> None:
    display = PlainDisplay(stream)
    display.finish(at(62, finished()), 0)
    assert (
        "  accuracy       0.617 ± 0.071  partial: 47 / 50 scored (TimeoutError 2, ValueError 1)\n" in stream.getvalue()
    )


def test_messages_are_lines_of_their_own(stream: io.StringIO) -> None:
    display = PlainDisplay(stream)
    display.message("hello")
    display.message("model code runs unconfined", "warning")
    assert stream.getvalue() == "hello\nwarning: model code runs unconfined\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_an_encoding_without_our_characters_is_no_reason_to_stop(encoding: str) -> None:
    raw = io.BytesIO()
    display = PlainDisplay(io.TextIOWrapper(raw, encoding=encoding))
    unit = replace(finished(), name="数学…")
    display.start(at(0, unit))
    display.finish(at(62, unit), 0)
    assert b"47 / 50 scored" in raw.getvalue()
    if encoding == "ascii":
        assert b"0.617 +/- 0.071" in raw.getvalue()
        assert b"??... | mock/model" in raw.getvalue()


def test_a_reader_that_went_away_does_not_stop_the_run() -> None:
    class Closed(io.StringIO):
        writes = 0

        def write(self, text: str) -> int:
            Closed.writes += 1
            raise BrokenPipeError(32, "Broken pipe")

    display = PlainDisplay(Closed(), interval=0)
    display.start(at(0))
    display.update(at(1))
    display.finish(at(2, finished()), 0)
    assert Closed.writes == 1


def test_none_shows_nothing_but_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    display = NoneDisplay()
    display.start(at(0))
    display.update(at(1))
    display.message("fine")
    display.message("not fine", "warning")
    display.finish(at(2, finished()), 0)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "warning: not fine\n"

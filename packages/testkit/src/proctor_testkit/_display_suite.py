"""The conformance suite of displays."""

from __future__ import annotations

import inspect
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from proctor import Task, eval, plugins
from proctor.contracts import Display, DisplayProvider, MessageLevel, RunSnapshot, SampleSnapshot
from proctor.dataset import Sample
from proctor.scorer import includes
from proctor_testkit._component import record_and_args
from proctor_testkit._display_runs import ODD_TEXTS, UNITS, at, ended, moments
from proctor_testkit._suite import Needed, Suite, check

__all__ = ["DisplaySuite"]

_PERIOD = 0.15
"""Seconds between two pictures: the engine's own pace, since a display may leave out what comes faster."""


class DisplaySuite(Suite):
    """What every display must do. A subclass names its ``display``.

    A display that draws only on a terminal has a ``screen`` fixture that gives it one, and a ``written`` fixture.

    Attributes:
        display: the display, as ``--display`` would be given: a name, or ``name:key=value,...``.
        capabilities: of ``messages`` (warnings and errors can be read in what it writes), ``results`` (so can the
            results at the end) and ``waits`` (so can what samples wait for, when a person asks).

    Example::

        class TestAcmeDisplay(DisplaySuite):
            display = "acme:colour=false"
            capabilities = frozenset({"messages", "results"})
    """

    kind = "display"
    needed = (Needed("display", 'display = "acme"', unless="screen"),)
    display: ClassVar[str]

    @classmethod
    def component(cls) -> str:
        """The display's name."""
        return getattr(cls, "display", super().component()).partition(":")[0]

    @pytest.fixture
    def screen(self) -> Display:
        """The display under test, new."""
        record, args = record_and_args("displays", self.display)
        made: Display = record.factory(args)
        return made

    @pytest.fixture
    def written(self, capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
        """``written()``: what the display has written since it was last asked."""
        return lambda: "".join(capfd.readouterr())

    def play(self, screen: Display, told: Sequence[RunSnapshot], exit_code: int = 0) -> None:
        """Show a run, from its plan to its end."""
        screen.start(told[0])
        for snapshot in told[1:-1]:
            screen.update(snapshot)
        screen.finish(told[-1], exit_code)

    @check("display.record")
    def test_its_record_says_what_it_is(self) -> None:
        record: DisplayProvider = plugins.get("displays", self.component())

        assert record.name == self.component()
        assert record.backends == self.backends, "the suite's `backends` and the record's agree"

    @check("display.synchronous")
    def test_its_methods_are_plain_functions(self, screen: Display) -> None:
        for name in ("start", "update", "finish", "message"):
            assert not inspect.iscoroutinefunction(getattr(screen, name)), f"{name} is called, not awaited"

    @check("display.run")
    def test_it_shows_a_run_of_several_units(self, screen: Display) -> None:
        self.play(screen, moments((*UNITS, replace(UNITS[0], name="third"))))

    @check("display.empty")
    def test_a_run_may_have_nothing_to_do(self, screen: Display) -> None:
        self.play(screen, [at(0.0), at(0.1), at(0.2)])

    @check("display.unknown_length")
    def test_a_unit_may_not_know_how_many_samples_it_has(self, screen: Display) -> None:
        self.play(screen, moments([replace(UNITS[0], total=None)]))
        self.play(screen, moments([replace(UNITS[0], total=0)]))

    @check("display.failures")
    def test_units_fail_in_every_way(self, screen: Display) -> None:
        failed = replace(UNITS[0], status="error", error="ValueError('no')", error_place="quiz.py:12", location="")
        cancelled = replace(UNITS[0], status="cancelled", done=3, errors={"ValueError": 3}, retried=2)
        stalled = replace(UNITS[0], stalled="no space left on the device", retry_cause="429 rate limit")
        told = [at(0.0, *UNITS), at(1.0, stalled, UNITS[1]), at(2.0, failed, cancelled), at(3.0, failed, cancelled)]

        self.play(screen, told, exit_code=1)

    @check("display.odd_text")
    @pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
    def test_names_and_errors_are_any_text(self, screen: Display, text: str) -> None:
        unit = replace(UNITS[0], name=text, model=text, label=text, errors={text: 1}, error_examples={text: text})
        samples = (SampleSnapshot(text, 1, ((3.0, text),)),)

        screen.start(at(0.0, unit))
        screen.update(at(9.0, unit, samples=samples))
        screen.message(text)
        screen.finish(at(20.0, replace(ended(unit), error=text, stalled=text)), 1)

    @check("display.many")
    def test_a_run_may_have_three_hundred_units(self, screen: Display) -> None:
        self.play(screen, moments([replace(UNITS[0], name=f"task {number}") for number in range(300)]))

    @check("display.narrow")
    @pytest.mark.parametrize(("columns", "lines"), [(1, 1), (20, 4), (500, 200)])
    def test_a_window_has_any_size(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, columns: int, lines: int
    ) -> None:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("LINES", str(lines))
        screen: Display = request.getfixturevalue("screen")  # made in that window

        self.play(screen, moments(UNITS))

    @check("display.messages")
    @pytest.mark.parametrize("level", ["info", "warning", "error"])
    def test_messages_come_at_any_time(self, screen: Display, level: MessageLevel) -> None:
        screen.start(at(0.0, *UNITS))
        screen.message("first", level)
        screen.update(at(1.0, *UNITS))
        screen.message("second\nof two lines", level)
        screen.finish(at(2.0, *map(ended, UNITS)), 0)

    @check("display.warnings", needs="messages")
    @pytest.mark.parametrize("level", ["warning", "error"])
    def test_a_warning_can_be_read(self, screen: Display, written: Callable[[], str], level: MessageLevel) -> None:
        screen.start(at(0.0, *UNITS))
        screen.message("watch this", level)
        screen.update(at(1.0, *UNITS))
        screen.finish(at(2.0, *map(ended, UNITS)), 0)

        assert "watch this" in written()

    @check("display.results", needs="results")
    def test_the_results_can_be_read(self, screen: Display, written: Callable[[], str]) -> None:
        self.play(screen, moments(UNITS[:1]))

        shown = written()
        for wanted in ("quiz", "accuracy", "0.617", "47"):
            assert wanted in shown, "the metric, its value, and of how many samples it is"

    @check("display.waits", needs="waits")
    def test_what_samples_wait_for_can_be_read(self, screen: Display, written: Callable[[], str]) -> None:
        samples = (SampleSnapshot("sample seven", 1, ((12.0, "model mock/model"),)),)

        screen.start(at(0.0, *UNITS))
        time.sleep(_PERIOD)
        screen.update(at(9.0, *UNITS, samples=samples))
        screen.finish(at(20.0, *map(ended, UNITS)), 0)

        assert "sample seven" in written()

    @check("display.prints")
    def test_what_task_code_prints_comes_out(self, screen: Display, written: Callable[[], str]) -> None:
        screen.start(at(0.0, *UNITS))
        sys.stdout.write("printed by a task\n")
        screen.update(at(1.0, *UNITS))
        screen.finish(at(2.0, *map(ended, UNITS)), 0)

        assert "printed by a task" in written()

    @check("display.restores")
    def test_it_leaves_everything_as_it_was_found(self, screen: Display, written: Callable[[], str]) -> None:
        before, threads = _surroundings(), set(threading.enumerate())

        self.play(screen, moments(UNITS))

        assert _surroundings() == before
        # Others may end meanwhile: a back-end keeps threads that were used for a while.
        left = [thread.name for thread in threading.enumerate() if thread not in threads]
        assert not left, f"threads go on: {left}"
        hidden, _, after = written().rpartition("\x1b[?25l")
        assert not hidden or "\x1b[?25h" in after, "the cursor is shown again"

    @check("display.thread")
    def test_it_works_on_a_thread_of_its_own(self, screen: Display) -> None:
        failed: list[BaseException] = []

        def run() -> None:
            try:
                self.play(screen, moments(UNITS))
            except BaseException as error:  # whatever it is, it would have turned the display off
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join(60)

        assert not thread.is_alive()
        assert not failed, failed

    @check("display.whole_run")
    def test_it_shows_a_real_run(self, tmp_path: Path, anyio_backend: str, capfd: pytest.CaptureFixture[str]) -> None:
        task = Task(dataset=[Sample(input="q", target="Default", id=n) for n in range(5)], scorer=includes())

        options: dict[str, Any] = {"display": self.display, "async_backend": anyio_backend}
        [log] = eval(task, model="mock/model", log_dir=str(tmp_path), **options)

        assert log.status == "success"
        assert "is turned off" not in capfd.readouterr().err


def _surroundings() -> dict[str, Any]:
    return {
        "stdout": sys.stdout,
        "stderr": sys.stderr,
        "signals": {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGWINCH)},
    }

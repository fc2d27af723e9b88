"""A loop that stands still is noticed, and the line that holds it is found while it does."""

from __future__ import annotations

import sys
import textwrap
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import pytest

from proctor.monitor import LoopWatch, Place, awaiting_place
from proctor.monitor._place import blocking_place


class _Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _watch(told: list[tuple[Place, float, bool]]) -> tuple[LoopWatch, _Clock]:
    clock = _Clock()
    return LoopWatch(lambda *stall: told.append(stall), clock=clock, interval=0.25, threshold=1.0), clock


def _look(watch: LoopWatch, clock: _Clock, passed: float = 0.25, used: float = 0.0) -> None:
    """The watching thread looks, after so many seconds."""
    clock.now += passed
    watch.look(clock.now, passed, used)


def test_a_stall_is_told_of_once_for_each_place_and_counted_each_time() -> None:
    told: list[tuple[Place, float, bool]] = []
    watch, clock = _watch(told)
    for _ in range(2):
        for _ in range(9):
            _look(watch, clock)
        watch.beaten()
    [(place, seconds, goes_on)] = told
    assert place.file == __file__
    assert place.function == "_look"
    assert place.code.startswith("watch.look(")
    assert (seconds, goes_on) == (pytest.approx(2.0), False)
    [stall] = watch.stalls()
    assert (stall.count, stall.seconds, stall.longest) == (2, pytest.approx(4.0), pytest.approx(2.0))
    assert watch.state().longest == pytest.approx(2.0)


def test_a_loop_that_is_late_for_less_than_the_threshold_is_only_late() -> None:
    told: list[tuple[Place, float, bool]] = []
    watch, clock = _watch(told)
    for _ in range(4):
        _look(watch, clock)
    assert watch.state().place is not None
    watch.beaten()
    assert (told, watch.stalls(), watch.state().place) == ([], [], None)
    assert watch.state().longest == pytest.approx(0.75)


def test_a_stall_that_does_not_end_is_told_of_all_the_same() -> None:
    told: list[tuple[Place, float, bool]] = []
    watch, clock = _watch(told)
    for _ in range(60):
        _look(watch, clock)
    [(_, seconds, goes_on)] = told
    assert goes_on
    assert seconds == pytest.approx(5.25)
    assert watch.state().lag == pytest.approx(14.75)


@pytest.mark.parametrize("first", ["the loop", "the watch"])
def test_a_process_that_was_stopped_did_not_block_its_loop(first: str) -> None:
    told: list[tuple[Place, float, bool]] = []
    watch, clock = _watch(told)
    if first == "the watch":
        _look(watch, clock, passed=3600.0, used=0.001)
        watch.beaten()
    else:
        clock.now += 3600.0
        watch.beaten()
        watch.look(clock.now, 3600.0, 0.001)
    assert (told, watch.stalls()) == ([], [])
    assert watch.stood_still(0.0) == (0.0, None)
    assert watch.state().longest < 1.0


def test_a_stall_counts_but_for_the_time_in_which_the_process_was_stopped() -> None:
    told: list[tuple[Place, float, bool]] = []
    watch, clock = _watch(told)
    for _ in range(5):
        _look(watch, clock)
    _look(watch, clock, passed=100.0, used=0.0)
    for _ in range(4):
        _look(watch, clock)
    watch.beaten()
    assert [seconds for _, seconds, _ in told] == [pytest.approx(2.25)]


def test_code_that_keeps_the_interpreter_to_itself_is_found_afterwards() -> None:
    """The watching thread can't run meanwhile, but the process was busy."""
    told: list[tuple[Place, float, bool]] = []
    watch, clock = _watch(told)
    _look(watch, clock, passed=3.0, used=2.9)
    watch.beaten()
    assert [place.function for place, *_ in told] == ["_look"]


def test_only_what_a_stall_shares_with_an_attempt_counts_for_it() -> None:
    watch, clock = _watch([])
    for _ in range(9):
        _look(watch, clock)
    watch.beaten()
    seconds, place = watch.stood_still(clock.now - 0.5)
    assert seconds == pytest.approx(0.5)
    assert place is not None
    assert watch.stood_still(clock.now) == (0.0, None)
    assert watch.stalls(clock.now) == []


@pytest.mark.anyio
async def test_a_real_stall_is_found_by_the_thread() -> None:
    told: list[tuple[Place, float, bool]] = []
    watch = LoopWatch(lambda *stall: told.append(stall), interval=0.02, threshold=0.1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.beat)
        await anyio.sleep(0.05)
        while not watch.stalls():
            _blocks()
            await anyio.sleep(0.1)
        tasks.cancel_scope.cancel()
    assert told[0][0].function == "_blocks"
    assert told[0][0].code == "time.sleep(0.3)"
    assert not [thread for thread in threading.enumerate() if thread.name == "proctor-watchdog" and not _ends(thread)]


def _blocks() -> None:
    time.sleep(0.3)


def _ends(thread: threading.Thread) -> bool:
    thread.join(60)
    return not thread.is_alive()


def _frame_of(code: str, file: str) -> FrameType:
    """A frame in ``file`` whose caller is the test."""
    names: dict[str, Any] = {"sys": sys}
    exec(compile(textwrap.dedent(code), file, "exec"), names)
    frame: FrameType = names["here"]()
    return frame


def test_the_task_is_named_and_not_the_library_that_it_calls(tmp_path: Path) -> None:
    library = tmp_path / "site-packages" / "requests" / "api.py"
    frame = _frame_of("def here():\n    return sys._getframe()", str(library))
    assert blocking_place(frame).function == "_frame_of"


def test_a_library_is_named_when_no_task_calls_it(tmp_path: Path) -> None:
    library = tmp_path / "site-packages" / "requests" / "api.py"
    frame = _frame_of("def here():\n    return sys._getframe()", str(library))
    alone = _Alone(frame)
    assert blocking_place(alone).where == f"{library}:2 here()"  # type: ignore[arg-type]


class _Alone:
    """A frame without callers."""

    def __init__(self, frame: FrameType) -> None:
        self.f_code, self.f_lineno, self.f_back = frame.f_code, frame.f_lineno, None


def test_a_place_shows_no_secrets(tmp_path: Path) -> None:
    file = tmp_path / "task.py"
    file.write_text('def here():\n    return sys._getframe(), dict(api_key="sk-abcdefghijklmnopqrstuvwxyz012345")\n')
    names: dict[str, Any] = {"sys": sys}
    exec(compile(file.read_text(), str(file), "exec"), names)
    place = blocking_place(names["here"]()[0])
    assert place.line == 2
    assert "sk-abcdefgh" not in place.code
    assert "sys._getframe()" in place.code


@pytest.mark.anyio
async def test_where_a_sample_waits_is_seen_from_outside() -> None:
    async def inner() -> None:
        await anyio.sleep(3600)

    async def outer() -> None:
        await inner()

    coroutine = outer()

    async def run() -> None:
        await coroutine

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        place = awaiting_place(coroutine)
        tasks.cancel_scope.cancel()
    assert place is not None
    assert (place.function, place.code) == ("inner", "await anyio.sleep(3600)")
    assert awaiting_place(coroutine) is None
    assert awaiting_place(None) is None

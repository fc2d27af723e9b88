"""The conformance suite of observers."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from proctor import plugins
from proctor.contracts import Observer, ObserverProvider, RunEnd, RunStart, SampleEnd, TaskEnd, TaskStart, UnitInfo
from proctor_testkit._component import record_and_args
from proctor_testkit._observer_probe import METHODS, Event, recorded_run, run_task, tell
from proctor_testkit._suite import Needed, Suite, check

__all__ = ["ObserverSuite"]

MANY = 500


class ObserverSuite(Suite):
    """What every observer must do. A subclass names its ``observer``.

    One that reports to a server overrides the fixture ``spec``, so that it reports to a fake one on loopback.

    Attributes:
        observer: the observer, as ``--observer`` would be given: a name, or ``name:key=value,...``.
        capabilities: of ``records``: what it was told can be read back, by the fixture ``recorded``.

    Example::

        class TestAcmeTracker(ObserverSuite):
            observer = "acme"
            capabilities = frozenset({"records"})

            @pytest.fixture
            def spec(self, tracker):
                return f"acme:url={tracker.base_url}"

            @pytest.fixture
            def recorded(self, tracker):
                return lambda: [row["sample_id"] for row in tracker.rows]
    """

    kind = "observer"
    needed = (Needed("observer", 'observer = "acme"', unless="spec"),)
    observer: ClassVar[str]

    @classmethod
    def component(cls) -> str:
        """The observer's name."""
        return getattr(cls, "observer", super().component()).partition(":")[0]

    @pytest.fixture
    def spec(self) -> str:
        """What ``--observer`` is given."""
        return self.observer

    @pytest.fixture
    def watcher(self, spec: str) -> Observer:
        """The observer under test, new."""
        record, args = record_and_args("observers", spec)
        made: Observer = record.factory(args)
        return made

    @pytest.fixture
    def recorded(self) -> Callable[[], Iterable[Any]]:
        """``recorded()``: the ids of the samples that the observer has made known, when its run is over."""
        raise pytest.UsageError(
            f"{type(self).__name__} declares the capability 'records': it needs a fixture `recorded`"
        )

    @pytest.fixture
    def events(self, tmp_path: Path) -> list[Event]:
        """What a real run of four samples tells."""
        _, probe = recorded_run(str(tmp_path / "a-run"))
        return probe.events

    def tell_all(self, watcher: Observer, events: Iterable[Event]) -> None:
        """Tell it, as the engine does: on a thread that is not the one on which it was made."""
        failed: list[BaseException] = []

        def run() -> None:
            for event in events:
                try:
                    tell(watcher, event)
                except BaseException as error:  # whatever it is, the engine would have shown it
                    failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join(60)

        assert not thread.is_alive(), "not done after 60 s"
        assert not failed, failed

    @check("observer.record")
    def test_its_record_says_what_it_is(self) -> None:
        record: ObserverProvider = plugins.get("observers", self.component())

        assert record.name == self.component()
        assert record.backends == self.backends, "the suite's `backends` and the record's agree"

    @check("observer.synchronous")
    def test_its_methods_are_plain_functions(self, watcher: Observer) -> None:
        for name in METHODS.values():
            assert not inspect.iscoroutinefunction(getattr(watcher, name)), f"{name} is called, not awaited"

    @check("observer.whole_run")
    def test_it_watches_a_real_run(
        self, spec: str, tmp_path: Path, anyio_backend: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        log = run_task(str(tmp_path / "whole_run"), [spec], backend=anyio_backend)

        assert log.status == "success"
        assert "The observer" not in capfd.readouterr().err

    @check("observer.order")
    def test_it_is_told_all_in_order_on_one_thread(self, watcher: Observer, tmp_path: Path, anyio_backend: str) -> None:
        log, probe = recorded_run(str(tmp_path / "order"), watcher, backend=anyio_backend)

        assert log.status == "success"
        told = [METHODS[type(event)] for event in probe.events]
        assert told == ["run_start", "task_start", *["sample_end"] * 4, "task_end", "run_end"]
        assert sorted(map(str, probe.loaded)) == ["1", "2", "3", "4"]
        assert len(probe.threads) == 1
        assert not probe.raised

    @check("observer.keeps_up")
    def test_it_keeps_up_with_a_run(self, spec: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        # 500 samples are done in a second or two; what then is still queued is given ten seconds.
        run_task(str(tmp_path / "logs"), [spec], samples=MANY)

        said = capfd.readouterr().err
        assert "did not finish" not in said
        assert "was too slow" not in said

    @check("observer.nothing_to_do")
    def test_a_run_may_have_no_units(self, watcher: Observer, events: list[Event]) -> None:
        start, *_, end = events

        self.tell_all(watcher, [_with(start, units=()), _with(end, table=())])

    @check("observer.unknown_length")
    def test_a_unit_may_not_know_how_many_samples_it_has(self, watcher: Observer, events: list[Event]) -> None:
        start, *rest = events
        assert isinstance(start, RunStart)
        units = tuple(dataclasses.replace(unit, samples=None) for unit in start.units)

        self.tell_all(watcher, [dataclasses.replace(start, units=units), *rest])

    @check("observer.several_units")
    def test_units_run_side_by_side(self, watcher: Observer, events: list[Event]) -> None:
        start, task_start, *samples, task_end, end = events
        assert isinstance(start, RunStart)
        units = (start.units[0], UnitInfo("another-unit", "another", "mock/other", 4))
        told: list[Event] = [dataclasses.replace(start, units=units)]
        for group in ([task_start], samples, [task_end]):
            told += [each for event in group for each in (event, _of(event, "another-unit"))]

        self.tell_all(watcher, [*told, end])

    @check("observer.again")
    def test_a_unit_that_failed_begins_again(self, watcher: Observer, events: list[Event]) -> None:
        start, task_start, first, *rest = events

        self.tell_all(watcher, [start, task_start, first, _failed(events), task_start, first, *rest])

    @check("observer.failures")
    def test_samples_and_units_fail(self, watcher: Observer, events: list[Event]) -> None:
        start, task_start, sample, *_, end = events
        assert isinstance(sample, SampleEnd)
        summary = sample.summary.model_copy(
            update={"error": "ValueError('no')", "scores": None, "limit": "token", "completed": False, "retries": 2}
        )
        bad = dataclasses.replace(sample, summary=summary)

        self.tell_all(watcher, [start, task_start, bad, _failed(events), _with(end, exit_code=1, table=())])

    @check("observer.cut_short")
    def test_a_run_that_is_interrupted_ends_without_its_units(self, watcher: Observer, events: list[Event]) -> None:
        start, task_start, sample, *_, end = events

        self.tell_all(watcher, [start, task_start, sample, _with(end, exit_code=130, table=())])

    @check("observer.odd_text")
    @pytest.mark.parametrize("text", ["ünïcode 語 😀", "[b]\x1b[31m \x00\t", "\\ud83d", "long " * 10_000, ""])
    def test_ids_and_inputs_are_any_text(self, watcher: Observer, events: list[Event], text: str) -> None:
        start, task_start, sample, *rest = events
        assert isinstance(sample, SampleEnd)
        summary = sample.summary.model_copy(update={"id": text, "input": text, "metadata": {text: text}})

        self.tell_all(watcher, [start, task_start, dataclasses.replace(sample, summary=summary), *rest])

    @check("observer.load_fails", level="should")
    def test_what_follows_a_sample_that_can_not_be_read_is_still_heard(
        self, watcher: Observer, events: list[Event]
    ) -> None:
        def gone() -> Any:
            raise FileNotFoundError("the log is gone")

        start, task_start, sample, *rest = events
        assert isinstance(sample, SampleEnd)
        tell(watcher, start)
        tell(watcher, task_start)
        with contextlib.suppress(OSError):  # as the engine contains it
            tell(watcher, dataclasses.replace(sample, load=gone))

        self.tell_all(watcher, rest)

    @check("observer.unchanged")
    def test_it_changes_nothing_of_what_it_is_told(self, watcher: Observer, events: list[Event]) -> None:
        before = [_content(event) for event in events]

        self.tell_all(watcher, events)

        assert [_content(event) for event in events] == before

    @check("observer.ends")
    def test_it_leaves_nothing_running_that_holds_the_process(self, watcher: Observer, events: list[Event]) -> None:
        before = set(threading.enumerate())

        self.tell_all(watcher, events)

        held = [each for each in threading.enumerate() if not each.daemon and each not in before]
        assert not held, "threads that are not daemons keep the process from ending"

    @check("observer.complete", needs="records")
    def test_no_sample_is_lost(
        self, spec: str, recorded: Callable[[], Iterable[Any]], tmp_path: Path, anyio_backend: str
    ) -> None:
        run_task(str(tmp_path / "logs"), [spec], samples=50, backend=anyio_backend)

        assert sorted(str(id) for id in recorded()) == sorted(str(number + 1) for number in range(50))


def _with(event: Event, **changes: Any) -> Event:
    changed: Event = dataclasses.replace(event, **changes)
    return changed


def _of(event: Event, unit: str) -> Event:
    """The same event of another unit."""
    return _with(event, unit=unit)


def _failed(events: Sequence[Event]) -> TaskEnd:
    """The end of a unit that has failed before there was a result."""
    end = next(event for event in events if isinstance(event, TaskEnd))
    header = end.header.model_copy(update={"status": "error", "results": None})
    return dataclasses.replace(end, header=header)


def _content(event: Event) -> Any:
    match event:
        case TaskStart():
            return event.spec.model_dump_json()
        case SampleEnd():
            return event.summary.model_dump_json()
        case TaskEnd():
            return event.header.model_dump_json()
        case RunStart() | RunEnd():
            return copy.deepcopy(dataclasses.asdict(event))

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proctor.schema import EvalLog, EvalSample, EvalSampleSummary, EvalSpec


@dataclass(frozen=True, slots=True)
class UnitInfo:
    """One unit of a run: a task with a model.

    Args:
        unit: the unit's identity, a hex digest that is the same in every run of the same work.
        task: the task's name.
        model: the model's name, ``provider/model``.
        samples: planned samples times epochs, or ``None`` when the dataset does not know its length.

    Example:
        >>> from proctor.contracts import UnitInfo
        >>> unit = UnitInfo(unit="9f86d081884c7d65", task="quiz", model="mock/model", samples=10)
    """

    unit: str
    task: str
    model: str
    samples: int | None = None


@dataclass(frozen=True, slots=True)
class RunStart:
    """A run begins; no request has been sent.

    Args:
        run_id: the run's id, as in the logs.
        units: what will be run, in plan order.
        log_dir: where the logs are written, a path or an URL.
        started: ISO 8601 time with offset.
        metadata: what the person gave with ``--metadata``.

    Example:
        >>> from proctor.contracts import RunStart
        >>> began = RunStart(run_id="fN3v", units=(unit,), log_dir="logs", started="2026-01-31T10:00:00+00:00")
    """

    run_id: str
    units: tuple[UnitInfo, ...] = ()
    log_dir: str = ""
    started: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskStart:
    """A unit begins: its log exists.

    In an eval set a unit that failed begins again, with a log of its own, and one that is complete does not begin.

    Args:
        unit: the unit's identity, as in :class:`UnitInfo`.
        spec: what is evaluated and how, as the log has it.

    Example:
        >>> from proctor.contracts import TaskStart
        >>> from proctor.schema import EvalConfig, EvalDataset, EvalSpec
        >>> spec = EvalSpec(
        ...     created="2026-01-31T10:00:00+00:00",
        ...     task="quiz",
        ...     model="mock/model",
        ...     dataset=EvalDataset(),
        ...     config=EvalConfig(),
        ... )
        >>> task_began = TaskStart(unit=unit.unit, spec=spec)
    """

    unit: str
    spec: EvalSpec


@dataclass(frozen=True, slots=True)
class SampleEnd:
    """A sample is done and can be read back from the log.

    Args:
        unit: the unit it belongs to.
        summary: the sample without its messages and events.
        load: reads the whole sample from the log; call it only when the whole is needed.

    Example:
        >>> from proctor.contracts import SampleEnd
        >>> from proctor.schema import EvalSample, EvalSampleSummary
        >>> sample = EvalSample(id=7, epoch=1, input="2 + 2?", target="4")
        >>> summary = EvalSampleSummary(id=7, epoch=1, input="2 + 2?", target="4")
        >>> sample_ended = SampleEnd(unit=unit.unit, summary=summary, load=lambda: sample)
        >>> sample_ended.load().target
        '4'
    """

    unit: str
    summary: EvalSampleSummary
    load: Callable[[], EvalSample]


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """A unit is done, or an attempt at it has failed.

    Args:
        unit: the unit.
        header: its log without samples: status, results, statistics, error.
        location: the log's path or URL.

    Example:
        >>> from proctor.contracts import TaskEnd
        >>> from proctor.schema import EvalLog
        >>> task_ended = TaskEnd(unit.unit, header=EvalLog(eval=spec, status="success"), location="logs/quiz.eval")
    """

    unit: str
    header: EvalLog
    location: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """One line of the table that ends a run.

    Args:
        unit: the unit's identity, as in :class:`UnitInfo`.
        task: the task's name.
        model: the model's name.
        status: the log's status.
        metrics: name and value of each headline metric, such as ``{"accuracy": 0.5, "stderr": 0.02}``.
        scored: samples that have a score.
        total: samples that were planned, times epochs unless their scores were reduced to one.
        partial: whether a metric is of fewer samples than were planned, or there is none where there should be.
        outcomes: what became of the samples, by kind (``completed``, ``error:TimeoutError``, ``limit:token``,
            ``unscored:refusal``, ``cancelled``, ``not_run``, ...).
        location: the log's path or URL.

    Example:
        >>> from proctor.contracts import RunRow
        >>> row = RunRow(unit.unit, "quiz", "mock/model", "success", metrics={"accuracy": 0.5}, scored=10, total=10)
    """

    unit: str
    task: str
    model: str
    status: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    scored: int = 0
    total: int = 0
    location: str = ""
    partial: bool = False
    outcomes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunEnd:
    """A run is over; nothing follows.

    Args:
        exit_code: what the command will return.
        table: its last screen: a row for each unit.

    Example:
        >>> from proctor.contracts import RunEnd
        >>> ended = RunEnd(exit_code=0, table=(row,))
    """

    exit_code: int
    table: tuple[RunRow, ...] = ()


class Observer:
    """Something that watches a run: a tracker, a notifier.

    Override what you need. Methods are called one at a time on a thread of their own, always after what they tell has
    been recorded, and can be slow or raise: no sample waits for them. At the end of a run what is still queued is
    given 10 seconds.

    Example:
        >>> from proctor.contracts import Observer
        >>> class Diary(Observer):
        ...     def run_start(self, event):
        ...         print(f"{event.run_id}: {len(event.units)} to do")
        ...
        ...     def sample_end(self, event):
        ...         print(f"sample {event.summary.id} is done")
        ...
        ...     def run_end(self, event):
        ...         print(f"over: {event.table[0].metrics}")
        >>> diary = Diary()
    """

    __slots__ = ()

    def run_start(self, event: RunStart) -> None:
        """A run begins: ``event`` says which units it has.

        Example:
            >>> diary.run_start(began)
            fN3v: 1 to do
        """

    def task_start(self, event: TaskStart) -> None:
        """A unit begins: ``event`` has its specification.

        Example:
            >>> diary.task_start(task_began)  # not overridden: nothing happens
        """

    def sample_end(self, event: SampleEnd) -> None:
        """A sample is recorded: ``event`` has its summary, and reads the whole when asked to.

        Example:
            >>> diary.sample_end(sample_ended)
            sample 7 is done
        """

    def task_end(self, event: TaskEnd) -> None:
        """A unit is recorded: ``event`` has its log without the samples.

        Example:
            >>> diary.task_end(task_ended)
        """

    def run_end(self, event: RunEnd) -> None:
        """The run is over: ``event`` has the table of all units.

        Example:
            >>> diary.run_end(ended)
            over: {'accuracy': 0.5}
        """

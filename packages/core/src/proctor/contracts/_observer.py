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
    """

    run_id: str
    units: tuple[UnitInfo, ...] = ()
    log_dir: str = ""
    started: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskStart:
    """A unit begins: its log exists and holds ``spec``.

    In an eval set a unit that failed begins again, with a log of its own, and one that is complete does not begin.
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
    """

    unit: str
    header: EvalLog
    location: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """One line of the table that ends a run.

    Args:
        unit, task, model: as in :class:`UnitInfo`.
        status: the log's status.
        metrics: name and value of each headline metric, such as ``{"accuracy": 0.5, "stderr": 0.02}``.
        scored: samples that have a score.
        total: samples that were planned, times epochs unless their scores were reduced to one.
        partial: whether a metric is of fewer samples than were planned, or there is none where there should be.
        outcomes: what became of the samples, by kind (``completed``, ``error:TimeoutError``, ``limit:token``,
            ``unscored:refusal``, ``cancelled``, ``not_run``, ...).
        location: the log's path or URL.
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
    """A run is over; nothing follows. ``exit_code`` is what the command will return, ``table`` its last screen."""

    exit_code: int
    table: tuple[RunRow, ...] = ()


class Observer:
    """Something that watches a run: a tracker, a notifier.

    Override what you need. Methods are called one at a time on a thread of their own, always after what they tell has
    been recorded, and can be slow or raise: no sample waits for them. At the end of a run what is still queued is
    given 10 seconds.
    """

    __slots__ = ()

    def run_start(self, event: RunStart) -> None:
        """A run begins."""

    def task_start(self, event: TaskStart) -> None:
        """A unit begins."""

    def sample_end(self, event: SampleEnd) -> None:
        """A sample is recorded."""

    def task_end(self, event: TaskEnd) -> None:
        """A unit is recorded."""

    def run_end(self, event: RunEnd) -> None:
        """The run is over."""

"""The screen of a run: what the engine tells it, and what it must do with that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

__all__ = [
    "Display",
    "GateSnapshot",
    "MessageLevel",
    "MetricSnapshot",
    "RunSnapshot",
    "SampleSnapshot",
    "UnitSnapshot",
    "UnitStatus",
]

UnitStatus: TypeAlias = Literal["waiting", "running", "scoring", "done", "error", "cancelled"]
"""What a unit does: it waits for its turn, runs samples, scores them, or is over."""
MessageLevel: TypeAlias = Literal["info", "warning", "error"]
"""How much a message matters to the person who reads it."""


@dataclass(frozen=True, slots=True)
class MetricSnapshot:
    """A metric of a finished unit. How many samples it is of stands beside every number shown.

    Attributes:
        scorer: whose scores it sums up.
        name: the metric's name.
        value: the metric itself.
        stderr: the standard error of ``value``; ``None`` when it was not asked for, or one score cannot tell it.
        scored: samples whose score counts in ``value``.
        total: samples that were planned.
        reducer: what made one score of a sample's epochs; ``None`` where there is one epoch.
        missing: why scores that were planned are not there (``error:TimeoutError``, ``unscored:refusal``,
            ``not_run``), and how many, samples times epochs. A metric with any is ``partial``.

    Example:
        >>> from proctor.contracts import MetricSnapshot
        >>> metric = MetricSnapshot("includes", "accuracy", 0.5, scored=8, total=10, missing={"error:TimeoutError": 2})
    """

    scorer: str
    name: str
    value: float
    stderr: float | None = None
    scored: int | None = None
    total: int | None = None
    reducer: str | None = None
    missing: Mapping[str, int] = field(default_factory=dict)

    @property
    def partial(self) -> bool:
        """Whether ``value`` is of fewer samples than were planned.

        Example:
            >>> metric.partial
            True
        """
        return bool(self.missing) or (self.scored or 0) < (self.total or 0)


@dataclass(frozen=True, slots=True)
class UnitSnapshot:
    """One task with one model, at one moment.

    Attributes:
        name: the task's name.
        model: the model's name, ``provider/model``.
        status: what the unit does now.
        total: samples times epochs; ``None`` while a dataset of unknown length is read.
        done: acknowledged samples, failed ones included.
        running: samples that were started and are not done.
        errors: kinds of errors (an exception's class name), and how many samples they befell.
        metrics: the running ``(label, value)`` pairs.
        input_tokens: tokens that went to the model so far.
        output_tokens: tokens that came from it.
        retries: model requests that were repeated.
        location: the log's path or URL; empty before there is one.
        results: the metrics, known at the end.
        outcomes: known at the end: what befell samples (``limit:token``, ``unscored``), and how many.
        seconds: of wall clock, known at the end.
        error: what ended the unit; empty when nothing did.
        error_place: the line of the task's code that it came from (``quiz.py:12``).
        label: what tells the unit from others of its name and model (``temperature=0.2``); empty when nothing has to.
        retry_cause: the latest error after which a request was repeated.
        retried: samples that were run again.
        error_examples: the first error of each kind in ``errors``, with its place.
        stalled: why nothing is acknowledged (a full disk), while the unit waits for that to end.
        next: of a unit that did not come to its end: what to type to go on from its log.

    Example:
        >>> from proctor.contracts import UnitSnapshot
        >>> unit = UnitSnapshot("quiz", "mock/model", status="running", total=10, done=3, running=2)
        >>> unit.total - unit.done - unit.running
        5
    """

    name: str
    model: str
    status: UnitStatus = "waiting"
    total: int | None = None
    done: int = 0
    running: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    metrics: tuple[tuple[str, float], ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    retries: int = 0
    location: str = ""
    results: tuple[MetricSnapshot, ...] = ()
    outcomes: Mapping[str, int] = field(default_factory=dict)
    seconds: float | None = None
    error: str = ""
    error_place: str = ""
    label: str = ""
    retry_cause: str = ""
    retried: int = 0
    error_examples: Mapping[str, str] = field(default_factory=dict)
    stalled: str = ""
    next: str = ""

    @property
    def partial(self) -> bool:
        """Of a finished unit: whether samples are missing from its metrics, or were not run.

        Example:
            >>> unit.partial
            True
        """
        return any(metric.partial for metric in self.results) or self.done < (self.total or 0)


@dataclass(frozen=True, slots=True)
class GateSnapshot:
    """A gate in use: of connections, sandboxes, subprocesses.

    Attributes:
        name: what it limits.
        held: how many are in use.
        limit: how many may be; ``None`` for no limit.
        waiting: how many wait for it.

    Example:
        >>> from proctor.contracts import GateSnapshot
        >>> gate = GateSnapshot("docker", held=4, limit=4, waiting=6)
        >>> f"{gate.name} {gate.held}/{gate.limit}"
        'docker 4/4'
    """

    name: str
    held: int
    limit: int | None
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class SampleSnapshot:
    """A sample that is under way.

    Attributes:
        name: the task and the sample's id.
        epoch: from 1.
        doing: what it does or waits for, each with the seconds so far, the longest first: parallel branches do several
            things at once.

    Example:
        >>> from proctor.contracts import SampleSnapshot
        >>> sample = SampleSnapshot("quiz 17", epoch=1, doing=((12.5, "generate"),))
        >>> sample.doing[0]
        (12.5, 'generate')
    """

    name: str
    epoch: int
    doing: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """The whole run at one moment.

    Attributes:
        units: all units, in plan order.
        gates: the gates that are in use.
        elapsed: seconds since the start.
        samples: those that are under way, the longest wait first, when a person wants to see them (the key Ctrl-\\),
            else ``None``.

    Example:
        >>> from proctor.contracts import RunSnapshot
        >>> snapshot = RunSnapshot(units=(unit,), gates=(gate,), elapsed=60.0)
    """

    units: tuple[UnitSnapshot, ...] = ()
    gates: tuple[GateSnapshot, ...] = ()
    elapsed: float = 0.0
    samples: tuple[SampleSnapshot, ...] | None = None


class Display(ABC):
    """What a screen implements.

    The engine calls every method on one thread that the display has to itself, ``update`` at most ten times a second
    with the newest snapshot. A display may be slow or raise: samples never wait for it, and a fault turns it off with
    one warning. ``start`` comes first and ``finish`` last, each once; ``message`` may come at any time between.

    Example:
        >>> from proctor.contracts import Display
        >>> class Counter(Display):
        ...     def start(self, snapshot):
        ...         self.update(snapshot)
        ...
        ...     def update(self, snapshot):
        ...         for unit in snapshot.units:
        ...             print(f"{unit.name}: {unit.done} of {unit.total}")
        ...
        ...     def finish(self, snapshot, exit_code):
        ...         print("done" if exit_code == 0 else f"exit code {exit_code}")
        ...
        ...     def message(self, text, level="info"):
        ...         print(f"{level}: {text}")
        >>> screen = Counter()
    """

    draws_over: ClassVar[bool] = False
    """Whether a picture takes the place of the one before. Then what a person asked to see (``samples``) is in all of
    them, until they ask again; otherwise in one only."""

    @abstractmethod
    def start(self, snapshot: RunSnapshot) -> None:
        """The plan is known and nothing has run: ``snapshot`` has the units, all of them waiting.

        Example:
            >>> screen.start(snapshot)
            quiz: 3 of 10
        """

    @abstractmethod
    def update(self, snapshot: RunSnapshot) -> None:
        """Something changed: ``snapshot`` is the newest state.

        Example:
            >>> screen.update(snapshot)
            quiz: 3 of 10
        """

    @abstractmethod
    def finish(self, snapshot: RunSnapshot, exit_code: int) -> None:
        """The run is over: leave the terminal as it was found and show the results that the units now carry.

        Args:
            snapshot: the last state.
            exit_code: what the command will return.

        Example:
            >>> screen.finish(snapshot, exit_code=0)
            done
        """

    @abstractmethod
    def message(self, text: str, level: MessageLevel = "info") -> None:
        """Show one sentence, above what is redrawn.

        Args:
            text: the sentence.
            level: how much it matters.

        Example:
            >>> screen.message("the disk is full", level="warning")
            warning: the disk is full
        """

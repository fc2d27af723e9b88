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
MessageLevel: TypeAlias = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class MetricSnapshot:
    """A metric of a finished unit.

    ``scored`` of ``total`` samples have a score that counts in ``value``; the two stand beside every number shown.
    ``stderr`` is the standard error of ``value``, ``None`` when it was not asked for, or one score cannot tell it.
    ``missing`` says why scores that were planned are not there: reasons (``error:TimeoutError``, ``unscored:refusal``,
    ``not_run``) and how many, samples times epochs. A metric with any is ``partial``.
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
        """Whether ``value`` is of fewer samples than were planned."""
        return bool(self.missing) or (self.scored or 0) < (self.total or 0)


@dataclass(frozen=True, slots=True)
class UnitSnapshot:
    """One task with one model, at one moment.

    ``total`` is samples x epochs, ``None`` while a dataset of unknown length is read. ``done`` counts acknowledged
    samples, failed ones included; ``running`` those that were started and are not done. ``errors`` maps a kind (an
    exception's class name) to a count of samples. ``metrics`` are the running ``(label, value)`` pairs. ``retries``
    counts repeated model requests.

    Known at the end: ``results``, ``outcomes`` (a kind such as ``limit:token`` or ``unscored``, and the number of
    samples it befell), ``seconds`` of wall clock, ``error`` that ended the unit, and ``error_place``, the line of the
    task's code that it came from (``quiz.py:12``).

    ``stalled`` says why nothing is acknowledged (a full disk), while the unit waits for that to end.

    ``label`` says what tells the unit from others of its name and model (``temperature=0.2``), and is empty when
    nothing has to. ``retry_cause`` is the latest error after which a request was repeated; ``retried`` counts samples
    that were run again. ``error_examples`` gives the first error of each kind in ``errors``, with its place.
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

    @property
    def partial(self) -> bool:
        """Of a finished unit: whether samples are missing from its metrics, or were not run."""
        return any(metric.partial for metric in self.results) or self.done < (self.total or 0)


@dataclass(frozen=True, slots=True)
class GateSnapshot:
    """A gate in use: ``held`` of ``limit`` (``None``: no limit), and how many wait for it."""

    name: str
    held: int
    limit: int | None
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class SampleSnapshot:
    """A sample that is under way.

    ``doing`` says what it does or waits for, each with the seconds so far, the longest first: parallel branches do
    several things at once.
    """

    name: str
    epoch: int
    doing: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """The whole run at one moment. ``elapsed`` is in seconds since its start.

    ``samples`` are those that are under way, the longest wait first, when a person wants to see them (the key Ctrl-\\),
    else ``None``.
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

    A display that shows nothing but a title::

        class TitleDisplay(Display):
            def start(self, snapshot: RunSnapshot) -> None:
                self.update(snapshot)

            def update(self, snapshot: RunSnapshot) -> None:
                done = sum(unit.done for unit in snapshot.units)
                print(f"\\x1b]0;{done} done\\x07", end="", flush=True)

            def finish(self, snapshot: RunSnapshot, exit_code: int) -> None:
                self.update(snapshot)

            def message(self, text: str, level: MessageLevel = "info") -> None:
                print(text)
    """

    draws_over: ClassVar[bool] = False
    """Whether a picture takes the place of the one before. Then what a person asked to see (``samples``) is in all of
    them, until they ask again; otherwise in one only."""

    @abstractmethod
    def start(self, snapshot: RunSnapshot) -> None:
        """The plan is known and nothing has run."""

    @abstractmethod
    def update(self, snapshot: RunSnapshot) -> None:
        """Something changed."""

    @abstractmethod
    def finish(self, snapshot: RunSnapshot, exit_code: int) -> None:
        """The run is over: leave the terminal as it was found and show the results that the units now carry."""

    @abstractmethod
    def message(self, text: str, level: MessageLevel = "info") -> None:
        """Show one sentence, above what is redrawn."""

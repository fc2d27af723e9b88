"""What scorers, metrics and reducers are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias, runtime_checkable

from proctor.schema import Score, Value
from proctor.solver import Target, TaskState

ScoreReason: TypeAlias = Literal[
    "invalid_response_format", "refusal", "no_response", "grader_failed", "scoring_failed", "no_target"
]
ValueToFloat: TypeAlias = Callable[[Any], float]


@runtime_checkable
class Scorer(Protocol):
    """Judges what the solvers made of a sample; ``None`` means that the scorer has nothing to say about it."""

    async def __call__(self, state: TaskState, target: Target) -> Score | None: ...


@dataclass(slots=True)
class SampleScore:
    """The score of one sample, as metrics see it: reduced over epochs unless the task asked for no reduction.

    What is not an attribute here is looked up in ``score``, so that a metric may write ``score.value`` and
    ``score.as_float()`` as well as ``score.score.value``. ``position`` is the sample's place in the order of the run,
    as far as it is known: samples end in another order, which must not show in the results.
    """

    score: Score
    sample_id: int | str | None = None
    sample_metadata: dict[str, Any] | None = None
    scorer: str | None = None
    position: int | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "score"), name)


@runtime_checkable
class Metric(Protocol):
    """Sums up scores: one number, or several by name."""

    def __call__(self, scores: list[SampleScore]) -> Value: ...


MetricProtocol = Metric


class Accumulator(ABC):
    """A metric in the making, whose size does not grow with the number of scores.

    The result depends on the scores, not on their order or on how they were merged (up to rounding).
    """

    __slots__ = ()

    live: ClassVar[bool] = True
    """Whether ``result`` is quick enough to be asked for after each sample."""

    values_only: ClassVar[bool] = False
    """Whether of a score nothing but its value is looked at; scores of a resumed run need not be read in full then."""

    @abstractmethod
    def add(self, score: SampleScore) -> None:
        """Take one score into account."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Take all scores of ``other`` into account; ``other`` stays as it is."""

    @abstractmethod
    def result(self) -> Value:
        """The metric of the scores so far."""


class AccumulatorMetric:
    """A metric that is computed as the scores come in.

    Args:
        make: makes the accumulator of a new, empty metric.

    Example::

        @metric
        def total() -> Metric:
            return AccumulatorMetric(Total)  # a subclass of Accumulator
    """

    def __init__(self, make: Callable[[], Accumulator]) -> None:
        self._make = make

    def accumulator(self) -> Accumulator:
        """An accumulator without scores."""
        return self._make()

    def __call__(self, scores: list[SampleScore]) -> Value:
        accumulator = self._make()
        for score in scores:
            accumulator.add(score)
        return accumulator.result()


@runtime_checkable
class ScoreReducer(Protocol):
    """Makes one score out of those of a sample's epochs."""

    def __call__(self, scores: list[Score]) -> Score: ...


MetricList: TypeAlias = Sequence["Metric | Mapping[str, Sequence[Metric]]"]
MetricsSpec: TypeAlias = MetricList | Mapping[str, Sequence[Metric]]

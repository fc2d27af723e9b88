"""How the metrics of a row of results are called on a screen, and which is the standard error of which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proctor.schema import EvalMetric

__all__ = ["ShownMetric", "shown_metrics"]

_STDERR = ("stderr", "bootstrap_stderr")
_MEANS = ("accuracy", "mean")  # a standard error belongs to the mean of the scores, which both are


class ShownMetric:
    """A metric of a log: a value of ``grouped(accuracy(), "g")`` is called ``accuracy[x]``, of whatever key."""

    def __init__(self, key: str, metric: EvalMetric) -> None:
        self.metric = metric
        params = metric.params
        self._inner = _inner(metric) if metric.group is not None and "group_key" in params else ""
        self.kind = self._inner or metric.name
        # What two values must share for one to be the other's standard error. The mean of the groups' values has none.
        of_all = self._inner and metric.name == params.get("all_label", "all")
        self._place = (params.get("group_key"), metric.name) if self._inner else None
        self._pairs = not (of_all and params.get("all", "samples") != "samples")
        if metric.group is None:
            self.label = key
        else:
            self.label = f"{self._inner}[{metric.name}]" if self._inner else f"{metric.group}[{key}]"

    @property
    def is_error(self) -> bool:
        """Whether it is a standard error."""
        return self.kind in _STDERR

    def is_error_of(self, other: ShownMetric) -> bool:
        """Whether it is the standard error of ``other``."""
        return other.kind in _MEANS and self._place == other._place and self._pairs and other._pairs

    @property
    def counts(self) -> Mapping[str, int] | None:
        """Its own counts; ``None`` where those of its row hold for it, empty where they are not known."""
        own = (self.metric.metadata or {}).get("proctor")
        if isinstance(own, dict):
            return {str(name): count for name, count in own.items() if isinstance(count, int)}
        return {} if self._inner or self.metric.group == "grouped" else None

    def name_in_full(self) -> None:
        """Name the field, too, by which it is grouped."""
        if self._inner:
            self.label = f"{self._inner}[{self.metric.params['group_key']}={self.metric.name}]"


def shown_metrics(metrics: Mapping[str, EvalMetric]) -> list[tuple[ShownMetric, ShownMetric | None]]:
    """The metrics of a row, each with its standard error: values first, then standard errors of nothing."""
    shown = [ShownMetric(key, metric) for key, metric in metrics.items()]
    _name_apart(shown)
    errors = [one for one in shown if one.is_error]
    pairs: list[tuple[ShownMetric, ShownMetric | None]] = []
    for one in shown:
        if not one.is_error:
            error = next((error for error in errors if error.is_error_of(one)), None)
            if error is not None:
                errors.remove(error)
            pairs.append((one, error))
    return pairs + [(error, None) for error in errors]


def _name_apart(shown: Iterable[ShownMetric]) -> None:
    labels = Counter(one.label for one in shown)
    for one in shown:
        if labels[one.label] > 1:
            one.name_in_full()


def _inner(metric: EvalMetric) -> str:
    """The name of the metric that is computed for each group."""
    inner: Any = metric.params.get("metric")
    name = inner.get("name") if isinstance(inner, dict) else None
    return name.rpartition("/")[2] if isinstance(name, str) else ""

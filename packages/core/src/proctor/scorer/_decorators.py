"""How scorers, metrics and reducers get their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, ParamSpec, TypeVar, overload

from proctor.contracts import UsageError
from proctor.registry import component, is_factory, is_registered, loggable, registry_info
from proctor.schema import redact
from proctor.scorer._types import MetricsSpec, Scorer, ScoreReducer

P = ParamSpec("P")
M = TypeVar("M")
R = TypeVar("R", bound=ScoreReducer)
S = TypeVar("S", bound=Scorer)


def scorer(
    metrics: MetricsSpec, name: str | None = None, **metadata: Any
) -> Callable[[Callable[P, S]], Callable[P, S]]:
    """Make a function that returns a scorer a scorer of that name.

    Args:
        metrics: the metrics by default: a list; or, for scores whose value is a dict, a dict from key (``*`` and ``?``
            stand for any text or character) to metrics; or a list that holds such dicts beside metrics of the whole.
        name: the name in the log; the function's by default.
        metadata: kept with the scorer in the log.
    """

    def register(factory: Callable[P, S]) -> Callable[P, S]:
        return component("scorer", factory, name, {"metrics": metrics, "metadata": metadata})

    return register


@overload
def metric(name: Callable[P, M], *, scores: Literal["auto", "reduced", "unreduced"] = "auto") -> Callable[P, M]: ...


@overload
def metric(
    name: str | None = None, *, scores: Literal["auto", "reduced", "unreduced"] = "auto"
) -> Callable[[Callable[P, M]], Callable[P, M]]: ...


def metric(
    name: str | Callable[..., Any] | None = None, *, scores: Literal["auto", "reduced", "unreduced"] = "auto"
) -> Any:
    """Make a function (or class) that returns a metric a metric of that name.

    Args:
        name: the name in the log; the function's by default.
        scores: whether the metric wants the scores reduced over epochs, or those of each epoch; ``auto`` is as the task
            says.
    """

    def register(factory: Callable[..., Any], label: str | None = None) -> Callable[..., Any]:
        return component("metric", factory, label, {"scores": scores})

    if callable(name):
        return register(name)
    return lambda factory: register(factory, name)


@overload
def score_reducer(func: Callable[P, R]) -> Callable[P, R]: ...


@overload
def score_reducer(*, name: str | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def score_reducer(func: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Make a function that returns a reducer a reducer of that name; with ``(name=)`` of another."""
    if func is not None:
        return component("reducer", func, name)
    return lambda factory: component("reducer", factory, name)


def short_name(obj: object) -> str:
    """The name of a component without its package's prefix; of another callable, the name of its function."""
    if is_registered(obj):
        return registry_info(obj).name.rpartition("/")[2]
    return str(getattr(obj, "__name__", None) or type(obj).__name__)


def logged_params(made: object) -> dict[str, Any]:
    """The arguments that were given to make a component, as JSON data without secrets; a component among them alike."""
    if not is_registered(made):
        return {}
    return redact({name: _logged(value) for name, value in registry_info(made).params_passed.items()})


def _logged(value: Any) -> Any:
    if is_registered(value):
        return {"type": registry_info(value).kind, "name": short_name(value), "params": logged_params(value)}
    if isinstance(value, Mapping):
        return {str(key): _logged(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_logged(item) for item in value]
    return loggable(value)


def scorer_metrics(scorer: Scorer) -> MetricsSpec:
    """The metrics that a scorer was declared with.

    Raises:
        UsageError: if ``scorer`` was not made by a function with ``@scorer``.
    """
    if not is_registered(scorer, "scorer") or is_factory(scorer):
        raise UsageError(
            f"{short_name(scorer)} is no scorer: decorate the function that makes it with @scorer(metrics=[...]) and "
            f"give what it returns (scorer=my_scorer(), with parentheses)"
        )
    metrics: MetricsSpec = registry_info(scorer).attribs["metrics"]
    return metrics

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar

Kind: TypeAlias = Literal["task", "solver", "scorer", "metric", "reducer", "tool", "agent"]

P = ParamSpec("P")
R = TypeVar("R")

_ATTRIBUTE = "__proctor_registry__"
_factories: dict[tuple[str, str], Callable[..., Any]] = {}


@dataclass(frozen=True, slots=True)
class RegistryInfo:
    """How a component was made: its kind, its name, all arguments, those that were passed, and the decorator's."""

    kind: Kind
    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    params_passed: Mapping[str, Any] = field(default_factory=dict)
    attribs: Mapping[str, Any] = field(default_factory=dict)


def tag(obj: R, info: RegistryInfo) -> R:
    """Attach ``info`` to ``obj`` and return it.

    What takes no attribute is wrapped in a partial when it can be called; else it is returned as it is, for the caller
    to refuse (a task function that returns nothing).
    """
    try:
        setattr(obj, _ATTRIBUTE, info)
    except AttributeError:
        if not callable(obj):
            return obj
        wrapped: Any = functools.partial(obj)
        setattr(wrapped, _ATTRIBUTE, info)
        return wrapped  # type: ignore[no-any-return]
    return obj


def is_registered(obj: object, kind: Kind | None = None) -> bool:
    """Whether ``obj`` is a component (of ``kind``)."""
    info = getattr(obj, _ATTRIBUTE, None)
    return isinstance(info, RegistryInfo) and (kind is None or info.kind == kind)


def registry_info(obj: object) -> RegistryInfo:
    """How ``obj`` was made.

    Raises:
        ValueError: if ``obj`` was not made by a decorated function.
    """
    info = getattr(obj, _ATTRIBUTE, None)
    if not isinstance(info, RegistryInfo):
        name = getattr(obj, "__qualname__", None) or repr(obj)
        raise ValueError(f"{name} is no Proctor component: decorate the function that makes it (@solver, @scorer, ...)")
    return info


def component(
    kind: Kind, factory: Callable[P, R], name: str | None = None, attribs: Mapping[str, Any] | None = None
) -> Callable[P, R]:
    """Register ``factory`` and return it wrapped so that what it makes knows its name and arguments.

    The wrapper keeps the factory's signature and carries a ``RegistryInfo`` of its own (without arguments).
    """
    label = name or factory.__name__
    signature = inspect.signature(factory)
    extra = dict(attribs or {})

    @functools.wraps(factory)
    def make(*args: P.args, **kwargs: P.kwargs) -> R:
        made = factory(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        passed = _flatten(signature, bound.arguments)
        bound.apply_defaults()
        return tag(made, RegistryInfo(kind, label, _flatten(signature, bound.arguments), passed, extra))

    tag(make, RegistryInfo(kind, label, attribs=extra))
    _factories[kind, label] = make
    return make


def _flatten(signature: inspect.Signature, arguments: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            flat.update(value)
        else:
            flat[name] = value
    return flat


def registered(kind: Kind) -> dict[str, Callable[..., Any]]:
    """The factories of ``kind`` that have been imported so far, by name."""
    return {name: factory for (of, name), factory in _factories.items() if of == kind}


def create(kind: Kind, name: str, **params: Any) -> Any:
    """Make the component ``name`` (with or without its package prefix).

    Raises:
        LookupError: if nothing of that name has been imported; the message names close matches.
    """
    factories = registered(kind)
    factory = factories.get(name) or factories.get(name.rpartition("/")[2])
    if factory is None:
        close = difflib.get_close_matches(name, factories, n=3)
        hint = f" Did you mean {' or '.join(close)}?" if close else f" Known: {', '.join(sorted(factories))}."
        raise LookupError(f"no {kind} is named {name!r}.{hint}")
    return factory(**params)


def loggable(value: Any) -> Any:
    """``value`` as JSON data: components become ``{type, name, params}``, unknown objects their ``str``."""
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if is_registered(value):
        info = registry_info(value)
        return {"type": info.kind, "name": info.name, "params": loggable(info.params)}
    if isinstance(value, Mapping):
        return {str(key): loggable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [loggable(item) for item in value]
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    return getattr(value, "__name__", None) or str(value)

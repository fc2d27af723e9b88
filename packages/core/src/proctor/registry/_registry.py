from __future__ import annotations

import difflib
import functools
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar

Kind: TypeAlias = Literal["task", "solver", "scorer", "metric", "reducer", "tool", "agent"]

P = ParamSpec("P")
R = TypeVar("R")

_ATTRIBUTE = "__proctor_registry__"
# By kind and name, then by place: a file that is loaded again takes its own place, and nobody else's.
_factories: dict[tuple[str, str], dict[str, Callable[..., Any]]] = {}


@dataclass(frozen=True, slots=True)
class RegistryInfo:
    """How a component was made.

    Args:
        kind: what it is.
        name: what it is called.
        params: all its arguments.
        params_passed: those that were given.
        attribs: what the decorator was given.
        module: the module that defines it.
        file: the file that defines it; empty when there is none (an interactive session).
    """

    kind: Kind
    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    params_passed: Mapping[str, Any] = field(default_factory=dict)
    attribs: Mapping[str, Any] = field(default_factory=dict)
    module: str = ""
    file: str = ""


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


def is_factory(obj: object) -> bool:
    """Whether ``obj`` is a decorated function itself, not what it returns: parentheses were forgotten."""
    # What a decorator returns wraps the author's function; what that returns hardly ever wraps anything.
    return is_registered(obj) and hasattr(obj, "__wrapped__") and not inspect.iscoroutinefunction(obj)


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
    described = RegistryInfo(kind, label, attribs=dict(attribs or {}), module=factory.__module__, file=_file(factory))

    @functools.wraps(factory)
    def make(*args: P.args, **kwargs: P.kwargs) -> R:
        made = factory(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        passed = _flatten(signature, bound.arguments)
        bound.apply_defaults()
        return tag(made, replace(described, params=_flatten(signature, bound.arguments), params_passed=passed))

    tag(make, described)
    places = _factories.setdefault((kind, label), {})
    place = described.file or described.module
    places.pop(place, None)  # the newest stands last
    places[place] = make
    return make


def _file(factory: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(factory), "__code__", None)
    file = code.co_filename if code is not None else getattr(sys.modules.get(factory.__module__), "__file__", None)
    return os.path.abspath(file) if file and os.path.isfile(file) else ""


def _flatten(signature: inspect.Signature, arguments: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            flat.update(value)
        else:
            flat[name] = value
    return flat


def registered(kind: Kind) -> list[Callable[..., Any]]:
    """The factories of ``kind`` that have been imported so far; several may have one name."""
    return [factory for (of, _), places in _factories.items() if of == kind for factory in places.values()]


def create(kind: Kind, name: str, **params: Any) -> Any:
    """Make the component ``name``, or that of a package: ``package/name``.

    A component of one's own hides Proctor's of the same name, with a warning.

    Raises:
        LookupError: if nothing of that name has been imported (the message names close matches), or it is defined in
            several places.
    """
    return _find(kind, name)(**params)


def _find(kind: Kind, name: str) -> Callable[..., Any]:
    package, _, short = name.rpartition("/")
    found = list(_factories.get((kind, name), {}).values()) or list(_factories.get((kind, short), {}).values())
    found = [factory for factory in found if _package(factory) == package] or found
    if not found:
        names = sorted({known for of, known in _factories if of == kind})
        close = difflib.get_close_matches(name, names, n=3)
        hint = f" Did you mean {' or '.join(close)}?" if close else f" Known: {', '.join(names)}."
        raise LookupError(f"no {kind} is named {name!r}.{hint}")
    own = [factory for factory in found if _package(factory) != "proctor"]
    if len(own) > 1:
        places = " and in ".join(registry_info(factory).file or registry_info(factory).module for factory in own)
        raise LookupError(
            f"the {kind} {name!r} is defined in {places}: rename one of them, or name the package (PACKAGE/{short}) "
            f"or, where a file can be given, the file (FILE@{short})"
        )
    if own and len(found) > 1:
        where = registry_info(own[0]).file or registry_info(own[0]).module
        warnings.warn(
            f"the {kind} {name!r} is the one in {where}, which hides Proctor's own: write proctor/{short} for that",
            stacklevel=3,
        )
    return (own or found)[-1]


def _package(factory: Callable[..., Any]) -> str:
    return factory.__module__.partition(".")[0]

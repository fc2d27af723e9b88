"""Stage 4: call a plugin's hook and check what it returns, so that a fault costs nobody else's results."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import pluggy

from proctor.plugins._faults import Code, Fault, said, traceback_of
from proctor.plugins._kinds import Kind
from proctor.plugins._scan import NAME, Source

_BACKENDS = ("asyncio", "trio")


def call(
    manager: pluggy.PluginManager, kind: Kind, module: ModuleType, source: Source, context: object = None
) -> tuple[list[Any], Fault | None]:
    """Call the hook of ``kind`` in ``module`` only; with one faulty record the others still count.

    pluggy would call all plugins at once, and drop every result when one raises.
    """
    label = f"{kind.hook} of {source.label}"
    caller = getattr(manager.hook, kind.hook)
    found: list[Any] = []
    # pluggy calls what was registered last first.
    for implementation in reversed(caller.get_hookimpls()):
        if implementation.plugin is not module:
            continue
        if implementation.wrapper or implementation.hookwrapper:
            return found, _bad(kind, module, source, f"{label} is a wrapper; Proctor calls each plugin's hook alone")
        try:
            # An implementation may leave the context out: it is given what it asks for.
            result = implementation.function(*(context for _ in implementation.argnames))
            if inspect.iscoroutine(result):
                result.close()
                return found, _bad(kind, module, source, f"{label} is a coroutine function, and hooks are synchronous")
            if not kind.record or result is None:
                continue
            if not isinstance(result, Iterable) or isinstance(result, (str, bytes, dict)):
                return found, _bad(
                    kind, module, source, f"{label} returned {_spell(result)} instead of a list of records"
                )
            records = list(result)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            message = f"{label} raised {said(error)}."
            detail = traceback_of(error)
            return found, Fault(
                Code.HOOK_RAISED, message, source.name, kind.name, module=module.__name__, detail=detail
            )
        for record in records:
            if (problem := _problem(kind, record)) is not None:
                return found, _bad(kind, module, source, f"{label} returned {problem}")
            if any(record.name == other.name for other in found):
                return found, _bad(kind, module, source, f"{label} returned two records named {record.name!r}")
            found.append(record)
    return found, None


def _bad(kind: Kind, module: ModuleType, source: Source, message: str) -> Fault:
    return Fault(Code.BAD_RECORD, f"{message}.", source.name, kind.name, module=module.__name__)


def _problem(kind: Kind, record: Any) -> str | None:
    wanted = getattr(importlib.import_module("proctor.contracts"), kind.record)
    if not isinstance(record, wanted):
        return f"{_spell(record)} instead of a {kind.record}"
    if not isinstance(record.name, str) or NAME.fullmatch(record.name) is None:
        return f"a {kind.record} whose name is {record.name!r}; a name has letters, digits and any of '._+-'"
    if not callable(getattr(record, "factory", call)):
        return f"a {kind.record} {record.name!r} whose factory, {record.factory!r}, can't be called"
    args = getattr(record, "args", None)
    if args is not None and not (isinstance(args, type) and hasattr(args, "__dataclass_fields__")):
        return f"a {kind.record} {record.name!r} whose args, {args!r}, is no dataclass"
    backends = getattr(record, "backends", ("asyncio",))
    if not isinstance(backends, (tuple, list)) or not backends or any(b not in _BACKENDS for b in backends):
        return f"a {kind.record} {record.name!r} with backends {backends!r}; they are 'asyncio' and 'trio'"
    return _env_problem(kind, record)


def _env_problem(kind: Kind, record: Any) -> str | None:
    env = getattr(record, "env", ())
    sound = isinstance(env, tuple) and all(
        isinstance(names, tuple) and names and all(isinstance(name, str) for name in names) for names in env
    )
    if sound:
        return None
    return f"a {kind.record} {record.name!r} with env {env!r}; write alternatives of sets, such as (('ACME_API_KEY',),)"


def _spell(value: object) -> str:
    return "a class" if isinstance(value, type) else f"an object of type {type(value).__name__!r}"

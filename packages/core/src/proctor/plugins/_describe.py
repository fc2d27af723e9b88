"""What ``proctor plugins show`` tells of a component: its record, read from the plugin's hooks module."""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proctor.contracts import UsageError
from proctor.plugins._args import ArgInfo, describe_args
from proctor.plugins._faults import Code, Fault
from proctor.plugins._kinds import KINDS
from proctor.plugins._known import KNOWN
from proctor.plugins._manager import Manager, PluginInfo
from proctor.plugins._scan import normalized

_UNREAD = frozenset({Code.BAD_ENTRY, Code.UNKNOWN_GROUP})
_DETAILS = ("max_connections", "adaptive", "backends", "config_files", "package")


@dataclass(frozen=True, slots=True)
class Description:
    """One component in full.

    Args:
        info: its entry and its state.
        summary: the record's own line.
        requires_core: what its distribution requires of the core, such as ``proctor-core<0.2,>=0.1``.
        env: alternatives of environment variables, and for each variable whether it is set.
        args: the arguments that it declares.
        details: what else its kind of record says.
    """

    info: PluginInfo
    summary: str = ""
    requires_core: str = ""
    env: tuple[Mapping[str, bool], ...] = ()
    args: tuple[ArgInfo, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


def describe(manager: Manager, name: str) -> list[Description]:
    """All components called ``name``, or those of the distribution ``name``; imports their hooks modules.

    Raises:
        UsageError: if there are none; the message names the close match or the distribution that would have it.
    """
    found = [info for info in manager.inventory() if info.name == name]
    found = found or [info for info in manager.inventory() if normalized(info.distribution) == normalized(name)]
    unread = [_unread(manager, fault) for fault in manager.catalog.scan.faults if _concerns(fault, name)]
    if not found and not unread:
        raise UsageError(_nothing(manager, name))
    return [*(_describe(manager, info) for info in found), *unread]


def _concerns(fault: Fault, name: str) -> bool:
    return fault.code in _UNREAD and (fault.name == name or normalized(fault.distribution) == normalized(name))


def _unread(manager: Manager, fault: Fault) -> Description:
    """An entry point that says nothing of use, so that no component came of it."""
    versions = [source.version for source in manager.catalog.scan.sources if source.name == fault.distribution]
    info = PluginInfo(fault.kind, fault.name, fault.distribution, "".join(versions[:1]), "", "broken", fault)
    return Description(info, requires_core=manager.requires_core(info))


def _nothing(manager: Manager, name: str) -> str:
    known = {other: distribution for names in KNOWN.values() for other, distribution in names.items()}
    installed = {info.name for info in manager.inventory()} | {info.distribution for info in manager.inventory()}
    message = f"No plugin, and no component of one, is called {name!r}."
    close = [name] if name in known else difflib.get_close_matches(name, installed | set(known), n=1)
    if not close:
        return f"{message} `proctor plugins` lists all."
    if close[0] in installed:
        return f"{message} Did you mean {close[0]!r}?"
    hint = "" if close[0] == name else f" Did you mean {close[0]!r}?"
    return f"{message}{hint} {close[0]!r} comes with {known[close[0]]}: `pip install --upgrade {known[close[0]]}`."


def _describe(manager: Manager, info: PluginInfo) -> Description:
    requires = manager.requires_core(info)
    if info.state not in {"available", "loaded"} or not KINDS[info.kind].record:
        return Description(info, requires_core=requires)
    record = None
    with contextlib.suppress(UsageError):  # if it is broken, its fault, known from now on, is what there is to show
        record = manager.get(info.kind, info.name)
    info = next(i for i in manager.inventory() if (i.kind, i.name, i.module) == (info.kind, info.name, info.module))
    if record is None:
        return Description(info, requires_core=requires)
    return Description(
        info,
        record.summary,
        requires,
        tuple({variable: bool(os.environ.get(variable)) for variable in names} for names in getattr(record, "env", ())),
        tuple(describe_args(record)) if hasattr(record, "args") else (),
        {detail: getattr(record, detail) for detail in _DETAILS if hasattr(record, detail)},
    )

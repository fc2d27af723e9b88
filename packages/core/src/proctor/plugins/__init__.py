"""Plugins: found without being imported, loaded when asked for, and unable to break one another.

One stage a file: ``_scan`` reads metadata, ``_fence`` refuses what was made for another core, ``_loader`` imports,
``_dispatch`` calls hooks, ``_catalog`` says what a name stands for, ``_manager`` puts them together.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, overload

from proctor.plugins._checks import check_backend, missing_env, require_env, running_backend
from proctor.plugins._faults import Code, Fault
from proctor.plugins._kinds import KINDS
from proctor.plugins._manager import PluginInfo

if TYPE_CHECKING:
    from proctor.contracts import (
        CommandProvider,
        DisplayProvider,
        LogStoreProvider,
        ModelProvider,
        ObserverProvider,
        PartitionerProvider,
        RunnerProvider,
        SandboxProvider,
        TaskPackage,
    )
    from proctor.plugins._args import ArgInfo, build_args, component_spec, describe_args
    from proctor.plugins._bisect import Slow, StartUp
    from proctor.plugins._describe import Description
    from proctor.plugins._doctor import Diagnosis, ModuleReport
    from proctor.plugins._make import BrokenComponent
    from proctor.plugins._manager import Manager
    from proctor.plugins._scaffold import NewPackage
    from proctor.plugins._source import source_spec

__all__ = [
    "KINDS",
    "ArgInfo",
    "BrokenComponent",
    "Code",
    "Description",
    "Diagnosis",
    "Fault",
    "ModuleReport",
    "NewPackage",
    "PluginInfo",
    "Slow",
    "StartUp",
    "build_args",
    "check_backend",
    "complete",
    "component_spec",
    "configure",
    "contained",
    "describe",
    "describe_args",
    "diagnose",
    "faults",
    "get",
    "inventory",
    "make",
    "measure_startup",
    "missing_env",
    "names",
    "origin",
    "require_env",
    "running_backend",
    "source_spec",
    "startup",
    "used",
    "write_package",
]

# The doctor and the conversion of arguments are not needed by every run.
_HOME = {
    "ArgInfo": "_args",
    "BrokenComponent": "_make",
    "build_args": "_args",
    "component_spec": "_args",
    "describe_args": "_args",
    "Description": "_describe",
    "Diagnosis": "_doctor",
    "ModuleReport": "_doctor",
    "NewPackage": "_scaffold",
    "Slow": "_bisect",
    "StartUp": "_bisect",
    "source_spec": "_source",
}
_lock = threading.Lock()
_choice: tuple[object, ...] = ()
_current: Manager | None = None


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"proctor.plugins.{_HOME[name]}"), name)
    raise AttributeError(f"module 'proctor.plugins' has no attribute {name!r}")


def configure(extra: Sequence[str] = (), disabled: Iterable[str] = ()) -> None:
    """Say which plugins there are: called before the first use, and again by each run.

    Args:
        extra: ``--plugin``: modules, or paths of Python files. They are imported now.
        disabled: ``--disable-plugin``: distributions, or ``DISTRIBUTION:NAME`` for one of the names they offer.

    ``PROCTOR_PLUGINS`` and ``PROCTOR_DISABLE_PLUGINS``, separated by commas, add to the two.

    Raises:
        UsageError: if an extra plugin can't be loaded, or nothing that is to be disabled is installed.
    """
    global _choice, _current
    from proctor.plugins._manager import DISABLE_VARIABLE, EXTRA_VARIABLE, Manager

    extra, disabled = tuple(extra), frozenset(disabled)
    choice = (extra, disabled, *(os.environ.get(name) for name in (EXTRA_VARIABLE, DISABLE_VARIABLE)))
    with _lock:
        if _current is None or choice != _choice:
            _current = Manager(extra, disabled)
            _choice = choice


def _in_use() -> Manager:
    if _current is None:
        configure()
    assert _current is not None, "configure() sets it"
    return _current


@overload
def get(kind: Literal["model_providers"], name: str, *, default: bool = False) -> ModelProvider: ...
@overload
def get(kind: Literal["sandbox_providers"], name: str, *, default: bool = False) -> SandboxProvider: ...
@overload
def get(kind: Literal["log_stores"], name: str, *, default: bool = False) -> LogStoreProvider: ...
@overload
def get(kind: Literal["displays"], name: str, *, default: bool = False) -> DisplayProvider: ...
@overload
def get(kind: Literal["observers"], name: str, *, default: bool = False) -> ObserverProvider: ...
@overload
def get(kind: Literal["runners"], name: str, *, default: bool = False) -> RunnerProvider: ...
@overload
def get(kind: Literal["partitioners"], name: str, *, default: bool = False) -> PartitionerProvider: ...
@overload
def get(kind: Literal["commands"], name: str, *, default: bool = False) -> CommandProvider: ...
@overload
def get(kind: Literal["tasks"], name: str, *, default: bool = False) -> TaskPackage: ...
@overload
def get(kind: str, name: str, *, default: bool = False) -> Any: ...
def get(kind: str, name: str, *, default: bool = False) -> Any:
    """The record of a component; imports the one module that declares it.

    Args:
        kind: one of ``KINDS``, such as ``model_providers``.
        name: the component's name.
        default: nobody asked for it by name: of several that offer it, the core's own is taken, with a warning.

    Raises:
        UsageError: if nothing offers the name (with the close match and the distribution that would provide it), if
            several do, or if what does is broken or was made for another version of the core.
    """
    return _in_use().get(kind, name, default=default)


def names(kind: str) -> list[str]:
    """The names of ``kind`` that can be asked for, sorted; imports no installed plugin."""
    return _in_use().names(kind)


def origin(kind: str, name: str) -> tuple[str, str]:
    """The distribution and the version that a component comes from; imports nothing.

    Raises:
        UsageError: if nothing offers the name.
    """
    return _in_use().origin(kind, name)


def complete(kind: str, name: str) -> AbstractContextManager[None]:
    """For the block that calls a record's factory: a failed import inside says which package to install.

    Args:
        kind: one of ``KINDS``.
        name: the component's name.

    Raises:
        PrerequisiteError: in the block, instead of an ``ImportError``.
    """
    return _in_use().complete(kind, name)


def make(kind: str, record: Any, *args: Any, **settings: Any) -> Any:
    """What the factory of ``record`` makes of the arguments: the one way to call a factory.

    Args:
        kind: one of ``KINDS``.
        record: what ``get`` gave.
        args, settings: the factory's own.

    Raises:
        BrokenComponent: it raised, ended the program, or made nothing of the right type; the message names the plugin.
        PrerequisiteError: a package that it needs is missing.
        UsageError: as the factory raised it.
    """
    return _in_use().make(kind, record, args, settings)


def contained(kind: str, name: str) -> AbstractContextManager[None]:
    """For a block that calls a method of a component: it can't end the program.

    Args:
        kind: one of ``KINDS``.
        name: the component's name.

    Raises:
        BrokenComponent: in the block, instead of ``SystemExit``; the message names the plugin.
    """
    return _in_use().contained(kind, name)


def startup() -> None:
    """Run the startup hooks, each once a process; what goes wrong is a warning, and in :func:`faults`."""
    _in_use().startup()


def inventory() -> list[PluginInfo]:
    """Every component of every plugin, with its state; imports nothing."""
    return _in_use().inventory()


def faults() -> list[Fault]:
    """What is known by now to be wrong with plugins."""
    return _in_use().faults()


def describe(name: str) -> list[Description]:
    """All components called ``name``, or all of the distribution ``name``, in full; imports their hooks modules.

    Raises:
        UsageError: if there are none; the message names the close match or the distribution that would have it.
    """
    return _in_use().describe(name)


def diagnose(only: Iterable[str] = (), say: Callable[[str], object] | None = None) -> list[Diagnosis]:
    """Examine every plugin in turn, each in a process of its own: what it costs, what it pulls in, what is wrong.

    Registration and startup hooks are called there, as every run calls them; factories are not.

    Args:
        only: distributions to examine; all by default.
        say: told of what takes long, in a sentence, while it does; by default it is a warning on standard error.
    """
    return _in_use().diagnose(only, say)


def measure_startup() -> StartUp:
    """Measure starts with some plugins switched off, until those that slow every start are found.

    Each start is a process of its own, in which startup hooks run as they do in every run.

    Raises:
        UsageError: if a start ends its process or does not end.
    """
    return _in_use().measure_startup()


def used() -> dict[str, str]:
    """Distribution and version of every plugin that took part in this process, for the log."""
    return _in_use().used()


def write_package(word: str, name: str, parent: str = ".") -> NewPackage:
    """Write the package of a new plugin, tests included, into a folder of its own in ``parent``.

    Args:
        word: what it is to be: ``model-provider``, ``sandbox``, ``log-store``, ``display``, ``observer``, ``command``
            or ``tasks``.
        name: what its component is to be called.
        parent: is made if it is not there.

    Raises:
        UsageError: if there is no such kind, the name is none or is taken, or something is in the way.
    """
    from proctor.plugins._scaffold import write_package

    return write_package(_in_use(), word, name, parent)

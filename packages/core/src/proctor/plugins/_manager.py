"""The stages put together: what is offered, what was chosen, what went wrong."""

from __future__ import annotations

import importlib
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import proctor
from proctor.contracts import StartupContext, TaskPackage, UsageError
from proctor.plugins import _messages as messages
from proctor.plugins._catalog import Catalog, switch
from proctor.plugins._dispatch import call
from proctor.plugins._faults import Fault
from proctor.plugins._fence import core_requirements
from proctor.plugins._kinds import KINDS, Kind, kind_named
from proctor.plugins._loader import Loader, is_file, source_of
from proctor.plugins._scan import CORE, Entry, Scan, Source, scan

if TYPE_CHECKING:
    from proctor.plugins._bisect import StartUp
    from proctor.plugins._describe import Description
    from proctor.plugins._doctor import Diagnosis

State: TypeAlias = Literal["available", "loaded", "disabled", "refused", "taken", "broken"]
EXTRA_VARIABLE = "PROCTOR_PLUGINS"
DISABLE_VARIABLE = "PROCTOR_DISABLE_PLUGINS"
_started: set[str] = set()  # modules whose startup hook has run: its effects last as long as the process


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """One component, as far as it is known without importing it.

    Args:
        kind, name: what it is asked for by.
        distribution, version: who provides it.
        module: what would be imported.
        state: ``available`` (not imported yet), ``loaded``, ``disabled``, ``refused`` (made for another core),
            ``taken`` (another distribution has the name too), ``broken``.
        fault: why it can't be used, when that is known.
    """

    kind: str
    name: str
    distribution: str
    version: str
    module: str
    state: State
    fault: Fault | None = None


class Manager:
    """What one process knows about its plugins.

    Args:
        extra: modules or files given with ``--plugin``; they are imported at once.
        disabled: distributions, or ``DISTRIBUTION:NAME`` for one of its components.
        core_version: what the version fence compares with.
        scanner: reads the environment, when first needed.
        environ: where ``PROCTOR_PLUGINS`` and ``PROCTOR_DISABLE_PLUGINS`` are read, which add to the two (separated by
            commas), and what startup hooks may change.

    Raises:
        UsageError: if something of ``extra`` can't be loaded, or nothing of a name in ``disabled`` is installed.
    """

    def __init__(
        self,
        extra: Sequence[str] = (),
        disabled: Iterable[str] = (),
        *,
        core_version: str = proctor.__version__,
        scanner: Callable[[], Scan] = scan,
        environ: MutableMapping[str, str] | None = None,
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self._core_version = core_version
        self._scanner = scanner
        self._lock = threading.RLock()
        self._loader = Loader()
        self._records: dict[tuple[str, str], dict[str, Any]] = {}
        self._faults: dict[Fault, None] = {}
        self._used: dict[str, str] = {}
        self._chosen: dict[tuple[str, str], Entry] = {}
        self._catalog: Catalog | None = None
        inherited = {switch(item) for item in _listed(self._environ.get(DISABLE_VARIABLE, ""))}
        # A variable is set once for many environments, so it may name what is not installed; a flag may not.
        explicit = {switch(item) for item in disabled if item.strip()} - inherited
        self._disabled = explicit | inherited
        named = dict.fromkeys([*extra, *_listed(self._environ.get(EXTRA_VARIABLE, ""))])
        self._extra = {spec: source_of(spec) for spec in named}
        self._extra_entries = [
            entry for spec, source in self._extra.items() for entry in self._load_extra(spec, source)
        ]
        if explicit:
            self._check_switches(explicit)

    def get(self, kind_name: str, name: str, *, default: bool = False) -> Any:
        """The record of a component; see :func:`proctor.plugins.get`."""
        kind = kind_named(kind_name)
        with self._lock:
            if not self.catalog.entries(kind, name):
                self._rescan()
            chosen = self.catalog.choose(kind, name)
            if default and isinstance(chosen, Fault) and (own := self.catalog.own(kind, name)) is not None:
                warnings.warn(f"{chosen.message} The core's own is used here.", stacklevel=4)
                chosen = own
            if chosen is None:
                raise self._nothing(kind, name)
            found = chosen if isinstance(chosen, Fault) else self._record(kind, chosen)
            if isinstance(chosen, Fault) or isinstance(found, Fault):
                self._faults[found] = None
                raise messages.broken(kind, name, found)
            self._used[chosen.source.name] = chosen.source.version
            self._chosen[kind.name, name] = chosen
            return found

    def _nothing(self, kind: Kind, name: str) -> UsageError:
        if offers := self.catalog.entries(kind, name):
            return messages.disabled(kind, offers)
        for fault in self.catalog.scan.faults:  # somebody offers it, in words that mean nothing
            if (fault.kind, fault.name) == (kind.name, name):
                return messages.broken(kind, name, fault)
        return messages.unknown(kind, name, self.names(kind.name))

    def names(self, kind_name: str) -> list[str]:
        """The names that can be asked for, sorted."""
        with self._lock:
            return self.catalog.names(kind_named(kind_name))

    def origin(self, kind_name: str, name: str) -> tuple[str, str]:
        """The distribution and version that ``name`` comes from; imports nothing."""
        kind = kind_named(kind_name)
        with self._lock:
            chosen = self.catalog.choose(kind, name)
            entries = [chosen] if isinstance(chosen, Entry) else self.catalog.entries(kind, name)
        if not entries:
            raise messages.unknown(kind, name, self.names(kind_name))
        return entries[0].source.name, entries[0].source.version

    def complete(self, kind_name: str, name: str) -> AbstractContextManager[None]:
        """For the block that makes a component; see :func:`proctor.plugins.complete`."""
        from proctor.plugins._missing import complete

        kind = kind_named(kind_name)
        entry = self._entry(kind, name)
        return nullcontext() if entry is None else complete(kind, name, entry.module, entry.source)

    def make(self, kind_name: str, record: Any, args: Sequence[Any], settings: Mapping[str, Any]) -> Any:
        """What the factory of ``record`` makes; see :func:`proctor.plugins.make`."""
        from proctor.plugins._make import make

        kind = kind_named(kind_name)
        with self.complete(kind_name, record.name):
            return make(kind, record.name, self._label(kind, record.name), record.factory, args, settings)

    def contained(self, kind_name: str, name: str) -> AbstractContextManager[None]:
        """For a block that calls a component; see :func:`proctor.plugins.contained`."""
        from proctor.plugins._make import contained

        kind = kind_named(kind_name)
        return contained(kind, name, self._label(kind, name))

    def _entry(self, kind: Kind, name: str) -> Entry | None:
        with self._lock:
            chosen = self._chosen.get((kind.name, name)) or self.catalog.choose(kind, name)
        return chosen if isinstance(chosen, Entry) else None

    def _label(self, kind: Kind, name: str) -> str:
        entry = self._entry(kind, name)
        return "" if entry is None else entry.source.label

    def requires_core(self, info: PluginInfo) -> str:
        """What the distribution of ``info`` requires of the core, as its metadata spell it."""
        sources = (source for source in self.catalog.scan.sources if source.name == info.distribution)
        return "; ".join(line for source in sources for line in core_requirements(source))

    def startup(self) -> None:
        """Run every startup hook that has not run in this process; faults are warnings, and recorded."""
        kind = KINDS["startup"]
        context = StartupContext(self._core_version, self._environ)
        with self._lock:
            entries = sorted(self.catalog.entries(kind), key=lambda entry: (entry.source.name, entry.module))
            hooks = {entry.module: (entry.name, entry.source) for entry in entries if self.catalog.usable(entry)}
            for spec, source in self._extra.items():
                hooks.setdefault(spec, ("", source))
            failed: list[tuple[Fault, Source]] = []
            for module, (name, source) in hooks.items():
                if module not in _started:
                    _started.add(module)
                    fault = self._start(kind, name, module, source, context)
                    failed += [(fault, source)] if fault is not None else []
        for fault, source in failed:  # nobody asks for one by name, so no error will show it
            warnings.warn(messages.not_started(fault, source), stacklevel=3)

    def inventory(self) -> list[PluginInfo]:
        """Every component with its state, sorted; imports nothing."""
        with self._lock:
            return [self._info(kind, entry) for kind in KINDS.values() for entry in self._sorted(kind)]

    def faults(self) -> list[Fault]:
        """What is known to be wrong by now."""
        with self._lock:
            return list(dict.fromkeys([*self.catalog.faults(), *self._faults, *self._loader.warnings]))

    def used(self) -> dict[str, str]:
        """Distribution and version of every plugin that took part so far."""
        with self._lock:
            return dict(sorted(self._used.items()))

    def describe(self, name: str) -> list[Description]:
        """All components called ``name``; see :func:`proctor.plugins.describe`."""
        from proctor.plugins._describe import describe

        return describe(self, name)

    def diagnose(self, only: Iterable[str] = (), say: Callable[[str], object] | None = None) -> list[Diagnosis]:
        """Examine every plugin in a process of its own; see :func:`proctor.plugins.diagnose`."""
        from proctor.plugins._doctor import diagnose

        return diagnose(self.catalog, self._extra, only, say)

    def measure_startup(self) -> StartUp:
        """Find what slows every start; see :func:`proctor.plugins.measure_startup`."""
        from proctor.plugins._bisect import bisect

        candidates = [source.name for source in self.catalog.scan.sources if source.name != CORE]
        disabled = sorted(f"{name}:{part}" if part else name for name, part in self._disabled)
        return bisect(candidates, disabled)

    @property
    def catalog(self) -> Catalog:
        """What is offered; the environment is read when this is first asked for."""
        if self._catalog is None:
            self._catalog = Catalog(self._scanner(), self._extra_entries, self._disabled, self._core_version)
        return self._catalog

    def _rescan(self) -> None:
        # Somebody may have installed what was missing while this process (a notebook) was running.
        importlib.invalidate_caches()
        self._catalog = None

    def _check_switches(self, explicit: set[tuple[str, str]]) -> None:
        known = self.catalog.switches()
        for distribution, name in sorted(explicit):
            spelled = f"{distribution}:{name}" if name else distribution
            if spelled not in known:
                raise messages.unknown_disabled(spelled, known)

    def _load_extra(self, spec: str, source: Source) -> list[Entry]:
        if is_file(spec) and not os.path.isfile(os.path.expanduser(spec)):
            raise UsageError(f"--plugin {spec}: there is no such file.")
        module = self._loader.load(spec, source)
        if isinstance(module, Fault):
            here = f" Did you mean the file, --plugin ./{spec}.py?" if os.path.isfile(f"{spec}.py") else ""
            raise UsageError(f"--plugin {spec} can't be used. {module.message}{here}")
        entries: list[Entry] = []
        for kind in KINDS.values():
            if not kind.record:
                continue
            records, fault = call(self._loader.pluggy, kind, module, source)
            if fault is not None:
                raise UsageError(f"--plugin {spec} can't be used. {fault.message}")
            self._records[spec, kind.name] = {record.name: record for record in records}
            entries += [Entry(kind.name, record.name, spec, source) for record in records]
        if not entries and not self._loader.implements(module, KINDS["startup"].hook):
            raise UsageError(
                f"--plugin {spec} can't be used: it implements no hook of Proctor. Decorate the functions with "
                "@hookimpl of proctor.hookspecs; docs/hooks.md shows each."
            )
        return entries

    def _start(self, kind: Kind, name: str, module_name: str, source: Source, context: StartupContext) -> Fault | None:
        module = self._loader.load(module_name, source)
        fault: Fault | None = None
        if isinstance(module, Fault):
            fault = module
        elif self._loader.implements(module, kind.hook):
            _, fault = call(self._loader.pluggy, kind, module, source, context)
            self._used[source.name] = source.version
        elif name:  # a --plugin may well have none, but an entry point promised one
            fault = self._no_record(kind, name, module, module_name, source)
        if fault is not None:
            self._faults[fault] = None
        return fault

    def _record(self, kind: Kind, entry: Entry) -> Any:
        """The record that ``entry`` declares, or a fault."""
        if kind.name == "tasks" and entry.source.packaged:
            return TaskPackage(entry.name, entry.module)
        key = (entry.module, kind.name)
        if key in self._records and entry.name in self._records[key]:
            return self._records[key][entry.name]
        module = self._loader.load(entry.module, entry.source)
        if isinstance(module, Fault):
            return module
        records, fault = call(self._loader.pluggy, kind, module, entry.source)
        self._faults.update({fault: None} if fault else {})
        self._records[key] = {}
        declared = self.catalog.declared(kind, entry.module)
        for record in records:
            if record.name in declared:
                self._records[key].setdefault(record.name, record)
            else:
                self._faults[messages.undeclared(kind, record.name, entry.module, entry.source)] = None
        if entry.name in self._records[key]:
            return self._records[key][entry.name]
        return fault or self._no_record(kind, entry.name, module, entry.module, entry.source)

    def _no_record(self, kind: Kind, name: str, module: ModuleType, module_name: str, source: Source) -> Fault:
        implemented = self._loader.implements(module, kind.hook)
        undecorated = callable(vars(module).get(kind.hook))
        return messages.no_record(kind, name, module_name, source, implemented=implemented, undecorated=undecorated)

    def _sorted(self, kind: Kind) -> list[Entry]:
        return sorted(self.catalog.entries(kind), key=lambda entry: (entry.name, entry.source.name))

    def _info(self, kind: Kind, entry: Entry) -> PluginInfo:
        state, fault = self._state(kind, entry)
        source = entry.source
        return PluginInfo(kind.name, entry.name, source.name, source.version, entry.module, state, fault)

    def _state(self, kind: Kind, entry: Entry) -> tuple[State, Fault | None]:
        if self.catalog.disabled(entry):
            return "disabled", None
        if (refused := self.catalog.fence(entry.source)) is not None:
            return "refused", refused
        if kind.name != "startup" and isinstance(chosen := self.catalog.choose(kind, entry.name), Fault):
            return "taken", chosen
        if entry.name in self._records.get((entry.module, kind.name), ()):
            return "loaded", None
        for fault in self._faults:
            here = fault.module == entry.module and fault.kind in {"", kind.name} and fault.name in {"", entry.name}
            if here and fault.severity == "error":
                return "broken", fault
        return "loaded" if self._loader.loaded(entry.module) else "available", None


def _listed(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]

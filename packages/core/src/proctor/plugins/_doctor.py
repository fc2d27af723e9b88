"""The doctor: every plugin in turn, each in a process of its own, so that a hang or a crash is a finding too."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any, TypeAlias

from proctor.contracts import UsageError
from proctor.plugins import _messages as messages
from proctor.plugins._catalog import Catalog
from proctor.plugins._faults import Code, Fault
from proctor.plugins._fence import core_requirements
from proctor.plugins._kinds import KINDS, suggestion
from proctor.plugins._probe import BEGINS, MARK, PRELUDE
from proctor.plugins._process import TIMEOUT, run_python, text_of
from proctor.plugins._scan import CORE, Entry, Source, normalized
from proctor.plugins._slow import said_when_slow

if TYPE_CHECKING:
    from packaging.requirements import Requirement

Say: TypeAlias = Callable[[str], object]
IMPORT_BUDGET = 0.030  # seconds of the processor, above what the core imports itself
_TRIES = 3  # a busy machine can make any import slow once
_SURELY = 0.5  # seconds: no other try makes that a sound import
_LIGHT = frozenset({"packaging", "pluggy", "typing_extensions"})
_IMPORT_TIME = re.compile(r"import time:\s*\d+ \|\s*(?P<micros>\d+) \|\s*(?P<module>\S+)")


@dataclass(frozen=True, slots=True)
class ModuleReport:
    """What importing one hooks module costs.

    Args:
        module: its name.
        seconds: of the processor, above what the core imports itself, or by the clock where the import waits for
            something; the least of up to three tries, and ``None`` if it was not tried.
        pulled_in: packages other than the plugin's own that came with it.
        slowest: packages or modules that took longest, with seconds; filled when the import is slow.
        records: names of the records that each kind's hook returned.
    """

    module: str
    seconds: float | None = None
    pulled_in: tuple[str, ...] = ()
    slowest: tuple[tuple[str, float], ...] = ()
    records: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is known about one plugin after it was examined.

    Args:
        distribution, version: whose it is.
        disabled: switched off, and so not imported.
        modules: its hooks modules.
        faults: what is wrong with it.
        missing_extras: optional requirements that are not installed, by extra.
    """

    distribution: str
    version: str
    disabled: bool = False
    modules: tuple[ModuleReport, ...] = ()
    faults: tuple[Fault, ...] = ()
    missing_extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def diagnose(
    catalog: Catalog, extra: Mapping[str, Source], only: Iterable[str] = (), say: Say | None = None
) -> list[Diagnosis]:
    """Examine every distribution that offers something, and every ``--plugin``.

    Args:
        catalog: what is offered.
        extra: what was given to ``--plugin``.
        only: distributions to examine; all by default.
        say: told of what takes long, while it does.

    Raises:
        UsageError: if one of ``only`` offers no plugin.
    """
    wanted = {normalized(name) for name in only}
    _check_wanted(wanted, [source.name for source in [*catalog.scan.sources, *extra.values()]])
    known = catalog.faults()
    by_source: dict[Source, list[Entry]] = {source: [] for source in [*catalog.scan.sources, *extra.values()]}
    for entry in (entry for kind in KINDS.values() for entry in catalog.entries(kind)):
        by_source.setdefault(entry.source, []).append(entry)
    found = [
        _examine(catalog, source, entries, known, say)
        for source, entries in by_source.items()
        if not wanted or normalized(source.name) in wanted
    ]
    told = {fault for diagnosis in found for fault in diagnosis.faults}
    nobodys = [fault for fault in known if fault not in told and not wanted]  # metadata too damaged to have an owner
    found += [Diagnosis(fault.distribution, "", faults=(fault,)) for fault in nobodys]
    return sorted(found, key=lambda diagnosis: diagnosis.distribution)


def _check_wanted(wanted: set[str], known: list[str]) -> None:
    for name in sorted(wanted - {normalized(other) for other in known}):
        raise UsageError(f"No installed distribution {name!r} offers a plugin.{suggestion(name, known)}")


def _examine(catalog: Catalog, source: Source, entries: list[Entry], known: list[Fault], say: Say | None) -> Diagnosis:
    faults = [fault for fault in known if source.name in fault.distribution.split(", ")]
    extras: dict[str, tuple[str, ...]] = {}
    if source.packaged:
        if source.name != CORE and not core_requirements(source):
            message = (
                f"{source.label} does not say which {CORE} it was made for. Its authors should add a requirement such "
                f"as '{CORE}>=0.1,<0.2'."
            )
            faults.append(Fault(Code.NO_CORE_REQUIREMENT, message, source.name))
        missing, extras = _requirements(source)
        faults += missing
    disabled = bool(entries) and all(catalog.disabled(entry) for entry in entries)
    modules: dict[str, list[Entry]] = {} if source.packaged else {source.name: []}
    packages: dict[str, list[str]] = {}  # of tasks, which are nobody's hooks modules and may import what they like
    for entry in entries:
        if entry.kind == "tasks" and source.packaged:
            packages.setdefault(entry.module, []).append(entry.name)
        elif entry.kind != "tasks":
            modules.setdefault(entry.module, []).append(entry)
    reports: list[ModuleReport] = []
    left_out = disabled or catalog.fence(source) is not None
    if left_out:
        reports += [ModuleReport(module) for module in [*modules, *packages]]
    for module, declared in () if left_out else modules.items():
        report, found = _module(module, source, declared, say)
        reports.append(report)
        faults += found
    for package, names in () if left_out else packages.items():
        answer = _probe(package, source, say, tasks=True)
        seconds = None if isinstance(answer, Fault) else answer.seconds
        reports.append(ModuleReport(package, seconds, records={"tasks": tuple(names)}))
        faults += [answer] if isinstance(answer, Fault) else answer.faults
    return Diagnosis(source.name, source.version, disabled, tuple(reports), tuple(dict.fromkeys(faults)), extras)


def _module(module: str, source: Source, declared: list[Entry], say: Say | None) -> tuple[ModuleReport, list[Fault]]:
    startup = not source.packaged or any(entry.kind == "startup" for entry in declared)
    examined = _probe(module, source, say, startup=startup)
    if isinstance(examined, Fault):
        return ModuleReport(module), [examined]
    answer, faults = examined.answer, examined.faults
    if any(not fault.kind and fault.severity == "error" for fault in faults):
        return ModuleReport(module, examined.seconds), faults
    seconds, slowest = _cost(module, source, examined, say)
    if slow := seconds > IMPORT_BUDGET and source.name != CORE:
        faults.append(_slow(module, source, seconds, slowest))
    faults += _mismatches(module, source, declared, answer, {fault.kind for fault in faults})
    own = {"proctor", module.partition(".")[0]}
    packages = {name.partition(".")[0] for name in answer["modules"]} - own - _LIGHT - sys.stdlib_module_names
    pulled_in = tuple(sorted(name for name in packages if not name.startswith("_")))
    if pulled_in:
        message = (
            f"Importing {module} of {source.label} pulls in {', '.join(pulled_in)}. Import them in the factory, which "
            "is called when the component is used."
        )
        faults.append(Fault(Code.HEAVY_IMPORT, message, source.name, module=module))
    records = {kind: tuple(names) for kind, names in answer["records"].items()}
    return ModuleReport(module, seconds, pulled_in, slowest if slow else (), records), faults


def _cost(module: str, source: Source, first: _Probe, say: Say | None) -> tuple[float, tuple[tuple[str, float], ...]]:
    """The seconds of the fastest import, and where they went; what surely takes long is imported once."""
    best = first
    for _ in range(_TRIES - 1):
        if not IMPORT_BUDGET < best.seconds < _SURELY or source.name == CORE:
            break
        if isinstance(again := _probe(module, source, say), Fault):
            break
        best = min(best, again, key=lambda probe: probe.seconds)
    return best.seconds, best.slowest(module)


def _mismatches(
    module: str, source: Source, declared: list[Entry], answer: dict[str, Any], explained: set[str]
) -> list[Fault]:
    """Entry points without a record, unless the hook's own fault explains it, and records without an entry point."""
    faults: list[Fault] = []
    names: dict[str, set[str]] = {}
    for entry in declared:
        kind = KINDS[entry.kind]
        names.setdefault(kind.name, set()).add(entry.name)
        implemented, returned = kind.name in answer["implemented"], answer["records"].get(kind.name, ())
        if kind.name in explained or (implemented and (entry.name in returned or not kind.record)):
            continue
        undecorated = kind.name in answer["undecorated"]
        faults.append(
            messages.no_record(kind, entry.name, module, source, implemented=implemented, undecorated=undecorated)
        )
    for of, returned in answer["records"].items() if source.packaged else ():
        surplus = sorted(set(returned) - names.get(of, set()))
        faults += [messages.undeclared(KINDS[of], name, module, source) for name in surplus]
    return faults


def _slow(module: str, source: Source, seconds: float, slowest: tuple[tuple[str, float], ...]) -> Fault:
    parts = ", ".join(f"{name} {1000 * cost:.0f} ms" for name, cost in slowest)
    budget = f"{1000 * IMPORT_BUDGET:.0f} ms are allowed"
    message = f"Importing {module} of {source.label} takes {1000 * seconds:.0f} ms; {budget}."
    return Fault(Code.SLOW_IMPORT, f"{message} Slowest: {parts}." if parts else message, source.name, module=module)


def _requirements(source: Source) -> tuple[list[Fault], dict[str, tuple[str, ...]]]:
    """What a distribution requires and is not there, and what its extras would add."""
    from packaging.requirements import InvalidRequirement, Requirement

    faults: list[Fault] = []
    extras: dict[str, tuple[str, ...]] = {}
    for line in source.requires:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue  # the fence speaks up about one on the core; any other is the installer's affair
        if normalized(requirement.name) == CORE or (found := _unmet(requirement)) is None:
            continue
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", str(requirement.marker or ""))
        if extra is not None:
            extras[extra[1]] = (*extras.get(extra[1], ()), requirement.name)
        elif requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            spelled = f"{requirement.name}{requirement.specifier}"
            message = f"{source.label} needs {spelled}, {found}: `pip install '{spelled}'`."
            faults.append(Fault(Code.MISSING_REQUIREMENT, message, source.name))
    return faults, extras


def _unmet(requirement: Requirement) -> str | None:
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return "which is not installed"
    return None if requirement.specifier.contains(version, prereleases=True) else f"and {version} is installed"


@dataclass(frozen=True, slots=True)
class _Probe:
    """What a process said that imported a module, and Python's account of the imports in it."""

    answer: dict[str, Any]
    account: list[str]
    faults: list[Fault]

    @property
    def seconds(self) -> float:
        return float(self.answer["seconds"])

    def slowest(self, module: str) -> tuple[tuple[str, float], ...]:
        """The three packages that took longest."""
        costs: dict[str, float] = {}
        for line in self.account:
            match = _IMPORT_TIME.match(line)
            if match is not None and match["module"] != module and not module.startswith(match["module"] + "."):
                package = match["module"].partition(".")[0]
                costs[package] = max(costs.get(package, 0.0), int(match["micros"]) / 1e6)
        return tuple(sorted(costs.items(), key=lambda item: -item[1])[:3])


def _probe(
    module: str, source: Source, say: Say | None, *, startup: bool = False, tasks: bool = False
) -> _Probe | Fault:
    request = {"module": module, "source": dataclasses.asdict(source), "startup": startup, "tasks": tasks}
    subject = f"{module} of {source.label}"
    try:
        with said_when_slow(f"Still importing {subject}; it has {TIMEOUT:.0f} s.", say):
            done = run_python(["-X", "importtime", "-c", PRELUDE], json.dumps(request), timeout=TIMEOUT)
        out, err, how = done.stdout, done.stderr, f"ended the process, with exit code {done.returncode}"
    except subprocess.TimeoutExpired as error:
        out, err, how = text_of(error.stdout), text_of(error.stderr), f"did not end within {TIMEOUT:.0f} s"
    lines = [line for line in out.splitlines() if line.startswith(MARK)]
    if lines:
        answer: dict[str, Any] = json.loads(lines[-1].removeprefix(MARK))
        faults = [Fault(**{**fault, "code": Code(fault["code"])}) for fault in answer["faults"]]
        if answer["starting"]:
            message = f"proctor_startup of {source.label} {how}."
            faults.append(Fault(Code.HOOK_RAISED, message, source.name, "startup", module=module))
        return _Probe(answer, err.partition(BEGINS)[2].splitlines(), faults)
    code = Code.IMPORT_TIMEOUT if how.startswith("did not") else Code.IMPORT_CRASH
    told = "\n".join(line for line in err.partition(BEGINS)[2].splitlines() if _IMPORT_TIME.match(line) is None)
    return Fault(code, f"Importing {subject} {how}.", source.name, module=module, detail=told[-4000:])

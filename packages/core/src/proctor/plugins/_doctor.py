"""The doctor: every plugin in turn, each in a process of its own, so that a hang or a crash is a finding too."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any

from proctor.contracts import UsageError
from proctor.plugins import _messages as messages
from proctor.plugins._catalog import Catalog
from proctor.plugins._faults import Code, Fault
from proctor.plugins._fence import core_requirements
from proctor.plugins._kinds import KINDS, suggestion
from proctor.plugins._loader import is_file
from proctor.plugins._probe import MARK, PRELUDE
from proctor.plugins._process import TIMEOUT, run_python
from proctor.plugins._scan import CORE, Entry, Source, normalized

if TYPE_CHECKING:
    from packaging.requirements import Requirement

IMPORT_BUDGET = 0.030  # seconds above `import proctor.hookspecs`
_TRIES = 3  # a busy machine can make any import slow once
_LIGHT = frozenset({"packaging", "pluggy", "typing_extensions"})
_IMPORT_TIME = re.compile(r"import time:\s*\d+ \|\s*(?P<micros>\d+) \|\s*(?P<module>\S+)")


@dataclass(frozen=True, slots=True)
class ModuleReport:
    """What importing one hooks module costs.

    Args:
        module: its name.
        seconds: the fastest import of up to three, above ``import proctor.hookspecs``; ``None`` if it was not tried.
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


def diagnose(catalog: Catalog, extra: Mapping[str, Source], only: Iterable[str] = ()) -> list[Diagnosis]:
    """Examine every distribution that offers something, and every ``--plugin``.

    Args:
        catalog: what is offered.
        extra: what was given to ``--plugin``.
        only: distributions to examine; all by default.

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
        _examine(catalog, source, entries, known)
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


def _examine(catalog: Catalog, source: Source, entries: list[Entry], known: list[Fault]) -> Diagnosis:
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
    for entry in entries:
        if entry.kind != "tasks":  # a package of tasks is nobody's hooks module, and importing it loads the tasks
            modules.setdefault(entry.module, []).append(entry)
    reports: list[ModuleReport] = []
    for module, declared in modules.items():
        if disabled or catalog.fence(source) is not None:
            reports.append(ModuleReport(module))
            continue
        report, found = _module(module, source, declared)
        reports.append(report)
        faults += found
    return Diagnosis(source.name, source.version, disabled, tuple(reports), tuple(dict.fromkeys(faults)), extras)


def _module(module: str, source: Source, declared: list[Entry]) -> tuple[ModuleReport, list[Fault]]:
    answer = _probe(module, source)
    if isinstance(answer, Fault):
        return ModuleReport(module), [answer]
    faults = [Fault(**{**fault, "code": Code(fault["code"])}) for fault in answer["faults"]]
    if any(not fault.kind and fault.severity == "error" for fault in faults):
        return ModuleReport(module, answer["seconds"]), faults
    faults += _mismatches(module, source, declared, answer, {fault.kind for fault in faults})
    seconds = answer["seconds"]
    for _ in range(_TRIES - 1):
        if seconds <= IMPORT_BUDGET or not isinstance(again := _probe(module, source), dict):
            break
        seconds = min(seconds, again["seconds"])
    slowest: tuple[tuple[str, float], ...] = ()
    if seconds > IMPORT_BUDGET:
        slowest = _slowest(module)
        faults.append(_slow(module, source, seconds, slowest))
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
    return ModuleReport(module, seconds, pulled_in, slowest, records), faults


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


def _probe(module: str, source: Source) -> dict[str, Any] | Fault:
    request = json.dumps({"module": module, "source": dataclasses.asdict(source)})
    try:
        done = run_python(["-c", PRELUDE, module], request, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        message = f"Importing {module} of {source.label} did not end within {TIMEOUT:.0f} s."
        return Fault(Code.IMPORT_TIMEOUT, message, source.name, module=module)
    for line in reversed(done.stdout.splitlines()):
        if line.startswith(MARK):
            answer: dict[str, Any] = json.loads(line.removeprefix(MARK))
            return answer
    message = f"Importing {module} of {source.label} ended the process, with exit code {done.returncode}."
    return Fault(Code.IMPORT_CRASH, message, source.name, module=module, detail=done.stderr[-4000:])


def _slowest(module: str) -> tuple[tuple[str, float], ...]:
    """The three packages that took longest, by Python's own account."""
    if is_file(module):
        return ()
    try:
        done = run_python(["-X", "importtime", "-c", f"import proctor.hookspecs\nimport {module}"], "", timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return ()
    lines = done.stderr.splitlines()
    # A package's line comes after those of what it imported; hookspecs' own ends what does not count.
    start = next((n for n, line in enumerate(lines) if line.rstrip().endswith("| proctor.hookspecs")), -1)
    costs: dict[str, float] = {}
    for line in lines[start + 1 :]:
        match = _IMPORT_TIME.match(line)
        if match is not None and match["module"] != module and not module.startswith(match["module"] + "."):
            package = match["module"].partition(".")[0]
            costs[package] = max(costs.get(package, 0.0), int(match["micros"]) / 1e6)
    return tuple(sorted(costs.items(), key=lambda item: -item[1])[:3])

"""What the doctor runs in a process of its own for each module: import it, register it, call its registration hooks.

Startup hooks are called last: every run calls them. Factories are never called: they have effects.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from types import ModuleType
from typing import Any

import proctor
from proctor.contracts import StartupContext
from proctor.plugins._dispatch import call
from proctor.plugins._faults import Fault
from proctor.plugins._kinds import KINDS
from proctor.plugins._loader import Loader, import_fault
from proctor.plugins._scan import Source

# The report is one marked line, since a plugin may print when imported.
MARK = "@@proctor-probe "
# Written to standard error when the import begins; Python's account of imports (-X importtime) follows it.
BEGINS = "@@proctor-import"
# What a process has that loads a plugin is there before the import is timed: none of it is the plugin's cost.
PRELUDE = """
from proctor.contracts import CommandProvider, UsageError
from proctor.plugins._probe import main
main()
"""
_WAITED = 0.3  # seconds beside the processor's: more than a busy machine keeps a short import waiting


def main() -> None:
    """Examine the module named by the request on standard input."""
    request = json.load(sys.stdin)
    name, source = request["module"], Source(**request["source"])
    loader = Loader()
    sys.stderr.write(f"{BEGINS}\n")
    sys.stderr.flush()
    before, started, worked = set(sys.modules), time.perf_counter(), time.process_time()
    module = _package(name, source) if request["tasks"] else loader.load(name, source)
    seconds, work = time.perf_counter() - started, time.process_time() - worked
    # On a busy machine any import takes long by the clock; one that waits for the network or sleeps really does.
    report: dict[str, Any] = {"seconds": seconds if seconds - work > _WAITED else work}
    report |= {"modules": sorted(set(sys.modules) - before), "faults": [], "records": {}}
    report |= {"implemented": [], "undecorated": [], "starting": False}
    if isinstance(module, Fault):
        report["faults"].append(_plain(module))
    elif module is not None:
        for kind in KINDS.values():
            if not loader.implements(module, kind.hook):
                report["undecorated"] += [kind.name] if callable(vars(module).get(kind.hook)) else []
                continue
            report["implemented"].append(kind.name)
            if kind.record:
                records, fault = call(loader.pluggy, kind, module, source)
                report["records"][kind.name] = [record.name for record in records]
                report["faults"] += [_plain(fault)] if fault else []
    if isinstance(module, ModuleType) and request["startup"]:
        _tell(report | {"starting": True})  # should it end the process, or not end
        context = StartupContext(proctor.__version__, dict(os.environ))
        _, fault = call(loader.pluggy, KINDS["startup"], module, source, context)
        report["faults"] += [_plain(fault)] if fault else []
    _tell(report)
    os._exit(0)  # a thread that a plugin started must not hold the answer back


def _package(name: str, source: Source) -> Fault | None:
    """What keeps a package of tasks from being imported."""
    try:
        importlib.import_module(name)
    except BaseException as error:  # SystemExit and worse, as in the loader
        return import_fault(name, source, error)
    return None


def _tell(report: dict[str, Any]) -> None:
    sys.stdout.write(f"\n{MARK}{json.dumps(report)}\n")
    sys.stdout.flush()


def _plain(fault: Fault) -> dict[str, str]:
    return {name: str(getattr(fault, name)) for name in Fault.__slots__}

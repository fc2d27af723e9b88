"""What the doctor runs in a process of its own for each module: import it, register it, call its registration hooks.

Startup hooks and factories are never called: they have effects.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from proctor.plugins._dispatch import call
from proctor.plugins._faults import Fault
from proctor.plugins._kinds import KINDS
from proctor.plugins._loader import Loader, is_file
from proctor.plugins._scan import Source

# The report is one marked line, since a plugin may print when imported.
MARK = "@@proctor-probe "
# The import is timed before anything else of Proctor is there: what a hooks module costs above `proctor.hookspecs`.
PRELUDE = """
import sys, time
import proctor.hookspecs
before, started = set(sys.modules), time.perf_counter()
try:
    __import__(sys.argv[1])
except BaseException:
    pass
seconds, modules = time.perf_counter() - started, sorted(set(sys.modules) - before)
from proctor.plugins._probe import main
main(seconds, modules)
"""


def main(seconds: float, modules: list[str]) -> None:
    """Examine the module named by the request on standard input, which has been imported in ``seconds``."""
    request = json.load(sys.stdin)
    name, source = request["module"], Source(**request["source"])
    loader = Loader()
    before, started = set(sys.modules), time.perf_counter()
    module = loader.load(name, source)
    if is_file(name):
        seconds, modules = time.perf_counter() - started, sorted(set(sys.modules) - before)
    report: dict[str, Any] = {"seconds": seconds, "modules": modules, "faults": [], "records": {}}
    report |= {"implemented": [], "undecorated": []}
    if isinstance(module, Fault):
        report["faults"].append(_plain(module))
    else:
        for kind in KINDS.values():
            if not loader.implements(module, kind.hook):
                report["undecorated"] += [kind.name] if callable(vars(module).get(kind.hook)) else []
                continue
            report["implemented"].append(kind.name)
            if kind.record:
                records, fault = call(loader.pluggy, kind, module, source)
                report["records"][kind.name] = [record.name for record in records]
                report["faults"] += [_plain(fault)] if fault else []
    sys.stdout.write(f"\n{MARK}{json.dumps(report)}\n")
    sys.stdout.flush()
    os._exit(0)  # a thread that a plugin started must not hold the answer back


def _plain(fault: Fault) -> dict[str, str]:
    return {name: str(getattr(fault, name)) for name in Fault.__slots__}

"""What imports cost: `import proctor`, the hook specifications, and each installed plugin's hooks module above them."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

from bench_support import Figure, at_most, main, run

ROUNDS = 7
PROGRAM = """
import sys, importlib
from time import perf_counter
first, *modules = sys.argv[1:]
if first != '-':
    importlib.import_module(first)
start = perf_counter()
for module in modules:
    importlib.import_module(module)
print(perf_counter() - start)
"""


def seconds(module: str, after: str = "-") -> float:
    """The best of some imports of ``module``, each in a new process that has imported ``after``."""
    return min(float(run([sys.executable, "-c", PROGRAM, after, module]).out) for _ in range(ROUNDS))


def hook_modules() -> list[str]:
    """The hook modules of the distributions that are installed here, the core's own among them."""
    groups = entry_points().groups
    entries = [entry for group in groups if group.startswith("proctor.") for entry in entry_points(group=group)]
    return sorted({entry.value for entry in entries if entry.group != "proctor.tasks"})


def measure() -> list[Figure]:
    return [
        at_most("imports: proctor", seconds("proctor"), "s", 0.1),
        at_most("imports: proctor.hookspecs", seconds("proctor.hookspecs"), "s", 0.1),
        *(at_most(f"imports: {name}", seconds(name, "proctor.hookspecs"), "s", 0.03) for name in hook_modules()),
    ]


if __name__ == "__main__":
    main(measure)

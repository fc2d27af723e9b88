"""All benchmarks, or those named: `python benchmarks/run.py [NAME...] [--save]`. Exits 1 when a limit is missed."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import cast

from bench_support import Figure, committed, save, show

NAMES = (
    "imports",
    "startup",
    "plugins",
    "http_throughput",
    "bedrock",
    "docker_sandboxes",
    "in_process",
    "logs",
    "memory",
    "resume",
    "simulate_adaptive",
    "adaptive",
    "adaptive_static",
    "parallel",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--save", action="store_true", help="write the figures to results.json")
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
    if unknown:
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    before = committed()
    missed: list[str] = []
    for name in options.names or NAMES:
        figures = cast("list[Figure]", importlib.import_module(name).measure())
        show(figures, before)
        if options.save:
            save(figures)
        missed += [figure.name for figure in figures if figure.ratio is not None and figure.ratio > 1]
    if missed:
        sys.exit(f"over the limit: {', '.join(missed)}")


if __name__ == "__main__":
    main()

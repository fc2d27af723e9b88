"""Import every module of packages: in an environment of wheels alone, where only what they declare is there.

python tests/wheels/import_all.py NAME...    exits with 1 and says which modules can't be imported
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import traceback
from collections.abc import Iterator


def modules(package: str) -> Iterator[str]:
    """The package and all within it but what would run a program."""
    yield package
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if not found.name.endswith(".__main__"):
            yield found.name


def main(packages: list[str]) -> int:
    """Import all of them; how many can't be."""
    failed = 0
    for name in [name for package in packages for name in modules(package)]:
        try:
            importlib.import_module(name)
        except Exception:
            failed += 1
            print(f"{name} can't be imported:", file=sys.stderr)
            traceback.print_exc(limit=-1)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)

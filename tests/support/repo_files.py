"""The files of this repository, for the tests about it."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = tuple(sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml")))


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that git knows, and every new one that it does not ignore."""
    git = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(git, capture_output=True, text=True, check=True, timeout=60).stdout.split("\0")
    return tuple(path for name in sorted(set(names)) if name and (path := ROOT / name).is_file())


def relative(path: Path) -> str:
    """The path as the repository has it."""
    return path.relative_to(ROOT).as_posix()


def sources() -> list[Path]:
    """The Python files of the packages themselves, without those of packages that one of them writes."""
    files = [path for path in tracked() if path.suffix == ".py" and "/templates/" not in relative(path)]
    return [path for path in files if relative(path).split("/")[2:3] == ["src"]]


def offenders(paths: Iterable[Path], rule: Callable[[Path], Sequence[object]]) -> dict[str, Sequence[object]]:
    """What ``rule`` finds, by file. One test for all files: a test for each is ten times the work of the rule."""
    return {relative(path): found for path in paths if (found := rule(path))}


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of ``path``."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def module_name(path: Path) -> str:
    """The importable name of a source file."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts[3:])
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

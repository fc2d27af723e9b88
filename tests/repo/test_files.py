"""What a file may be: short, of functions that fit on a screen, and free of this or that person's machine."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from repo_files import offenders, relative, sources, tracked, tree

LINES, FUNCTION_LINES = 500, 60
# A file that is longer needs its reason here.
LONG: dict[str, str] = {}

# Written in pieces, so that this file does not name them either.
HOSTS = ("pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".org", "npmjs" + ".com", "deb.debian" + ".org")
MACHINE = re.compile(r"(?<![\w.])/(?:" + "|".join(("wo" + "rk", "fa" + "rm", "ro" + "ot", "ho" + "me/[a-z]+")) + ")/")

python_files = [path for path in tracked() if path.suffix == ".py"]
# Recorded data keep what they recorded; the rule is for what people write here.
text_files = [
    path
    for path in tracked()
    if path.suffix not in {".eval", ".png", ".gif", ".gz", ".zip", ".gguf"}
    if not relative(path).startswith("tests/data/")
]


def test_a_python_file_is_at_most_500_lines() -> None:
    def too_many(path: Path) -> list[int]:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        return [lines] if lines > LINES and relative(path) not in LONG else []

    assert offenders(python_files, too_many) == {}


def test_a_function_fits_on_a_screen() -> None:
    def long(path: Path) -> list[str]:
        functions = [node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        return [node.name for node in functions if (node.end_lineno or node.lineno) - node.lineno >= FUNCTION_LINES]

    assert offenders(sources(), long) == {}


def test_a_file_names_no_package_index_and_no_machine() -> None:
    def named(path: Path) -> list[str]:
        text = path.read_text(encoding="utf-8", errors="replace")
        return [host for host in HOSTS if host in text] + [match.group() for match in MACHINE.finditer(text)]

    assert offenders(text_files, named) == {}


def test_nothing_is_left_for_later() -> None:
    unfinished = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b|raise NotImplementedError(?!\w)")

    def left(path: Path) -> list[str]:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if unfinished.search(line)]

    assert offenders(sources(), left) == {}

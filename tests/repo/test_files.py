"""What a file may be: short, of functions that fit on a screen, and free of this or that person's machine."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from repo_files import relative, sources, tracked, tree

LINES, FUNCTION_LINES = 500, 60
# A file that is longer needs its reason here.
LONG: dict[str, str] = {}

# Written in pieces, so that this file does not name them either.
HOSTS = ("pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".org", "npmjs" + ".com", "deb.debian" + ".org")
MACHINE = re.compile(r"(?<![\w.])/(?:" + "|".join(("wo" + "rk", "fa" + "rm", "ro" + "ot", "ho" + "me/[a-z]+")) + ")/")

python_files = [path for path in tracked() if path.suffix == ".py"]
text_files = [path for path in tracked() if path.suffix not in {".eval", ".png", ".gif", ".gz", ".zip", ".gguf"}]


@pytest.mark.parametrize("path", python_files, ids=relative)
def test_a_python_file_is_at_most_500_lines(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())

    assert lines <= LINES or relative(path) in LONG


@pytest.mark.parametrize("path", [path for path in sources() if "/tests/" not in relative(path)], ids=relative)
def test_a_function_fits_on_a_screen(path: Path) -> None:
    functions = [node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    long = [node.name for node in functions if (node.end_lineno or node.lineno) - node.lineno >= FUNCTION_LINES]

    assert not long


@pytest.mark.parametrize("path", text_files, ids=relative)
def test_a_file_names_no_package_index_and_no_machine(path: Path) -> None:
    # Recorded data keep what they recorded; the rule is for what people write here.
    if relative(path).startswith("tests/data/"):
        return
    text = path.read_text(encoding="utf-8", errors="replace")

    found = [host for host in HOSTS if host in text] + [match.group() for match in MACHINE.finditer(text)]

    assert not found


@pytest.mark.parametrize("path", [path for path in sources() if "/tests/" not in relative(path)], ids=relative)
def test_nothing_is_left_for_later(path: Path) -> None:
    unfinished = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b|raise NotImplementedError(?!\w)")

    found = [line for line in path.read_text(encoding="utf-8").splitlines() if unfinished.search(line)]

    assert not found

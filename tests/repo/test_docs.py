"""The docs do what they say: their Python runs, their commands exit with 0, their links lead somewhere."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from repo_files import ROOT, relative, tracked

from proctor.schema import env_name, option_table

PAGES = [
    path for path in tracked() if path.suffix == ".md" and relative(path).split("/")[0] not in {"tests", ".github"}
]
# Pages whose Python and commands run here. A page of a package has tests in its package.
RUN = [path for path in PAGES if relative(path) == "README.md" or relative(path).startswith("docs/")]
# Every page is read after the first task, so its file is there.
SHARED_FILE = "capitals.py"
GATES = ("connections", "samples", "tasks", "sandboxes", "subprocesses")

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text and the line it starts at."""

    language: str
    text: str
    line: int

    @property
    def file(self) -> str | None:
        """The name in a first line such as ``# arithmetic.py``: the block is a file that later blocks use."""
        match = re.match(r"# (\w+\.py)\n", self.text)
        return match[1] if match else None


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(match[1], match[2], text.count("\n", 0, match.start()) + 1) for match in BLOCK.finditer(text)]


def run(command: list[str], folder: Path) -> None:
    """Run ``command`` in ``folder``; its output is shown when it fails."""
    scripts = Path(sys.executable).parent
    env = os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(folder)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", RUN, ids=relative)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    for other in RUN:
        for block in blocks(other):
            if block.file == SHARED_FILE:
                (tmp_path / SHARED_FILE).write_text(block.text, encoding="utf-8")

    for block in blocks(page):
        if block.language == "python" and block.file:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            run([sys.executable, "-c", block.text], tmp_path)
        elif block.language == "console":
            for line in block.text.splitlines():
                if line.startswith("$ "):
                    run(["sh", "-c", line.removeprefix("$ ")], tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in target]

    assert [target for target in targets if not (page.parent / target).exists()] == []


generate = runpy.run_path(str(ROOT / "docs" / "generate.py"))


@pytest.mark.parametrize("name", generate["PAGES"])
def test_generated_parts_are_what_the_code_declares(name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")

    assert page == generate["page"](name), "run: python docs/generate.py"


def test_every_option_is_on_the_page_about_the_command_line() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")

    assert [key for key in option_table() if f"`{key}`" not in page] == []


def test_every_limit_is_on_the_page_about_parallelism() -> None:
    page = (ROOT / "docs" / "parallelism.md").read_text(encoding="utf-8")
    limits = {key: option for key, option in option_table().items() if option.group == "Parallelism"}
    gates = [line for line in page.splitlines() if line.startswith("| ")]

    assert [option.flag for option in limits.values() if option.flag not in page] == []
    for key in (*(f"max_{gate}" for gate in GATES), "adaptive_connections"):
        names = (f"`{limits[key].flag}`", f"`{key}`", f"`{env_name(key)}`")
        assert any(all(name in line for name in names) for line in gates)


def test_every_command_is_on_the_page_about_the_command_line() -> None:
    done = subprocess.run([sys.executable, "-m", "proctor", "--help"], capture_output=True, text=True, timeout=120)
    commands = re.findall(r"^  ([a-z][a-z-]+)  ", done.stdout, re.MULTILINE)
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")

    assert commands
    assert [name for name in commands if f"`proctor {name}" not in page] == []


@pytest.mark.parametrize("session", ["demo", "tests", "lint", "types", "peers", "bench", "shell", "unit-3.13"])
def test_the_sessions_that_people_are_told_of_exist(session: str) -> None:
    noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")

    assert f"def {session.partition('-')[0]}(session: nox.Session)" in noxfile

"""No test waits for ever for another process: the rule, and the helper that keeps it."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest
from child_processes import running
from repo_files import offenders, relative, tracked, tree

HELPER = "tests/support/child_processes.py"
BOUNDED = {f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output")}

tests = [path for path in tracked() if path.suffix == ".py" and "tests" in relative(path).split("/")[:3]]


def unbounded(module: ast.Module) -> list[str]:
    """Where a process is started that a test may wait for without a bound."""
    found: list[str] = []
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module == "subprocess":
            found += [f"line {node.lineno}: import subprocess itself, so that its calls are seen"]
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        limited = any(keyword.arg == "timeout" for keyword in node.keywords)
        if name.endswith("Popen"):
            found += [f"line {node.lineno}: Popen; use child_processes.running, which kills the child on any exit"]
        elif not limited and (name in BOUNDED or name.endswith(".runpytest_subprocess")):
            found += [f"line {node.lineno}: {name} without timeout="]
    return found


def test_a_test_starts_no_process_without_a_bound() -> None:
    assert offenders([path for path in tests if relative(path) != HELPER], lambda path: unbounded(tree(path))) == {}


@pytest.mark.parametrize(
    "source",
    [
        "subprocess.Popen(['x'])",
        "with subprocess.Popen(['x']) as child: pass",
        "subprocess.run(['x'])",
        "subprocess.check_output(['x'])",
        "from subprocess import run",
        "pytester.runpytest_subprocess()",
    ],
)
def test_the_rule_finds_what_it_forbids(source: str) -> None:
    assert len(unbounded(ast.parse(source))) == 1


def alive(pid: int) -> bool:
    """Whether a process runs: it is there, and no zombie that nobody has asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_failing_block_kills_the_child_and_its_own_children() -> None:
    """Given a child that sleeps for ever and one of its own, when the block fails, then both are dead."""
    code = "import subprocess, sys, time; print(subprocess.Popen(['sleep', '3600']).pid, flush=True); time.sleep(3600)"

    with pytest.raises(ZeroDivisionError), running([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        raise ZeroDivisionError

    assert child.returncode == -9
    while alive(grandchild):  # a killed process needs a moment to die
        time.sleep(0.01)


def test_a_child_that_ended_in_time_keeps_its_exit_code() -> None:
    with running([sys.executable, "-c", "raise SystemExit(7)"]) as child:
        child.wait(60)

    assert child.returncode == 7

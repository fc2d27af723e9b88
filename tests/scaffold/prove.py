"""Prove that what ``proctor plugins new`` writes works, as somebody has it who installed wheels and has no checkout.

For each kind: the package is written in an empty folder, checked by ruff and mypy, installed, and found; its tests are
green, and with each fault of ``faults.py`` planted in it exactly the checks fail that are named there. Last, what
the page about writing a plugin tells people to type is typed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults import FAULTS, Fault

NAME = "blue-sky"
SECONDS = 600  # for any one command
KINDS = ("model-provider", "sandbox", "log-store", "display", "observer", "command", "tasks")
TIMING = {"slow-import"}  # of a busy machine's doing


def run(*command: str | Path, cwd: Path, fails: Sequence[int] = ()) -> subprocess.CompletedProcess[str]:
    """Run a command to its end.

    Raises:
        SystemExit: if it ends otherwise than with 0 or one of ``fails``; its output is shown.
    """
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode not in (0, *fails):
        sys.exit(f"{' '.join(words)}\nended with {done.returncode}:\n{done.stdout[-6000:]}{done.stderr[-3000:]}")
    return done


@dataclass(frozen=True)
class Environment:
    """A fresh environment, in which there are only wheels."""

    python: Path
    folder: Path

    def proctor(self, *arguments: str) -> Any:
        """What a command prints as JSON."""
        return json.loads(run(self.python.parent / "proctor", *arguments, "--json", cwd=self.folder).stdout)

    def install(self, package: Path, name: str) -> None:
        """Install a package with what its tests need, in the place of what was there of it."""
        words = ("uv", "pip", "install", "-q", "--python", self.python, "--reinstall-package", name)
        run(*words, f"{package}[test]", cwd=self.folder)

    def test(self, package: Path, *options: str) -> tuple[str, set[str]]:
        """Run the package's tests: pytest's closing line, and the checks that failed."""
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        command = (self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--proctor-report", report, *options)
        done = run(*command, cwd=package, fails=(1,))
        rows = json.loads(report.read_text())
        rows = rows if isinstance(rows, list) else rows["checks"]
        failed = {row["check"] for row in rows if row["outcome"] == "failed"}
        if done.returncode and not failed:
            sys.exit(f"a test of {package.name} failed that is no check:\n{done.stdout[-6000:]}")
        return done.stdout.strip().splitlines()[-1], failed


def prove(env: Environment, kind: str, faults: Sequence[Fault], options: Sequence[str]) -> None:
    """Write, look at, install, find and test a package of ``kind``; then with each fault in it."""
    written = env.proctor("plugins", "new", kind, NAME)
    package, name = env.folder / written["folder"], written["distribution"]
    look_at(env, package)
    env.install(package, name)
    found = [info for info in env.proctor("plugins") if info["distribution"] == name]
    assert [(info["name"], info["state"]) for info in found] == [(NAME, "available")], found
    [told] = env.proctor("plugins", "doctor", name)["plugins"]
    assert {fault["code"] for fault in told["faults"]} <= TIMING, told
    line, failed = env.test(package, *options)
    if failed:
        sys.exit(f"{kind}: as it was written it fails in {', '.join(sorted(failed))}")
    print(f"{kind}: {line}", flush=True)
    for fault in faults:
        plant(env, fault, package, name, options)


def plant(env: Environment, fault: Fault, package: Path, name: str, options: Sequence[str]) -> None:
    """Put one fault in, test, and take it out again."""
    file = package / "src" / name.replace("-", "_") / fault.file
    sound = file.read_text(encoding="utf-8")
    if sound.count(fault.old) != 1:
        sys.exit(f"{fault.kind}: {fault.old!r} stands {sound.count(fault.old)} times in {fault.file}, not once")
    file.write_text(sound.replace(fault.old, fault.new), encoding="utf-8")
    env.install(package, name)
    _, failed = env.test(package, *options)
    file.write_text(sound, encoding="utf-8")
    wanted = fault.checks if "not slow" in options else fault.checks | fault.slow
    if failed != wanted:
        sys.exit(
            f"{fault.kind}, {fault.what}: fails in {', '.join(sorted(failed)) or 'nothing'}, "
            f"and should in {', '.join(sorted(wanted))}"
        )
    print(f"{fault.kind}, {fault.what}: fails in {', '.join(sorted(failed))}", flush=True)


def follow(env: Environment, page: Path) -> None:
    """Type what a page says, block by block, in one shell in an empty folder."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    folder = env.folder / "tutorial"
    folder.mkdir()
    path = f"PATH={env.python.parent}{os.pathsep}{os.environ['PATH']}"
    said = run("env", path, "sh", "-ec", "".join(blocks), cwd=folder).stdout
    if "FAILED tests/test_conformance.py" not in said:
        sys.exit(f"{page.name}: the fault that it plants is seen by no check:\n{said[-6000:]}")
    print(f"{page.name}: {len(blocks)} blocks", flush=True)


def look_at(env: Environment, package: Path) -> None:
    """Style and types, by the settings in the package's own project file."""
    run("ruff", "check", "-q", ".", cwd=package)
    run("ruff", "format", "-q", "--check", ".", cwd=package)
    run("mypy", "--no-error-summary", "--python-executable", env.python, "src", cwd=package)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all by default")
    parser.add_argument("--python", type=Path, required=True, help="the interpreter of the fresh environment")
    parser.add_argument("--faults", type=int, metavar="N", help="plant so many of each kind's faults; all by default")
    parser.add_argument("--page", type=Path, help="then type what this page says")
    parser.add_argument("--quick", action="store_true", help="without the checks that take more than a few seconds")
    options = parser.parse_args()
    kinds = options.kinds or KINDS
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"no kind is called {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    marks = ("-m", "not slow") if options.quick else ()
    with tempfile.TemporaryDirectory(prefix="proctor-scaffold-") as folder:
        env = Environment(options.python.absolute(), Path(folder))
        for kind in kinds:
            prove(env, kind, [fault for fault in FAULTS if fault.kind == kind][: options.faults], marks)
        if options.page:
            follow(env, options.page)


if __name__ == "__main__":
    main()

"""What plugins cost a run that uses none of them: fifty whose import takes 0.2 s, and an environment with broken ones.

The second needs environments of wheels, which `nox -s with_broken` makes: --alone PYTHON has the core, --among PYTHON
plugins, too, five of them broken.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench_support import Figure, at_most, environment, folder, main, reference, run

PLUGINS, IMPORT_SECONDS = 50, 0.2
REPEATS = 7  # the first of them compiles the bytecode
HOOKS = f"import time\ntime.sleep({IMPORT_SECONDS})\nraise SystemExit('nobody asked for me')\n"
TASK = """
from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes

@task
def one():
    return Task(dataset=[Sample(input="Hello?", target="Default")], scorer=includes())
"""


def dummies(root: Path) -> None:
    """Fifty distributions, each with a model provider whose import is slow."""
    for number in range(PLUGINS):
        package, info = root / f"slow_{number}", root / f"slow_{number}-1.0.dist-info"
        package.mkdir()
        info.mkdir()
        (package / "__init__.py").write_text("")
        (package / "hooks.py").write_text(HOOKS)
        requires = "Requires-Dist: proctor-core>=0.1\n"
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: slow-{number}\nVersion: 1.0\n{requires}")
        (info / "entry_points.txt").write_text(f"[proctor.model_providers]\nslow{number} = slow_{number}.hooks\n")


def seconds(python: str, **env: str) -> float:
    """One sample of the mock model from start to end, by the interpreter of an environment."""
    with folder() as home:
        (home / "task.py").write_text(TASK)
        command = [python, "-m", "proctor", "eval", str(home / "task.py"), "--model", "mock/model"]
        return run([*command, "--display", "none", "--log-dir", str(home)], env=environment(**env)).wall


def side_by_side(one: tuple[str, dict[str, str]], other: tuple[str, dict[str, str]]) -> tuple[float, float]:
    """The fastest of two ways to start, in turn: what else the machine does befalls both, and only ever adds."""
    pairs = [(seconds(one[0], **one[1]), seconds(other[0], **other[1])) for _ in range(REPEATS)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def measure(alone: str = "", among: str = "") -> list[Figure]:
    with folder() as root:
        dummies(root)
        here = sys.executable
        without, beside = side_by_side((here, {}), (here, {"PYTHONPATH": str(root)}))
    figures = [
        reference("plugins: one sample of the mock model", without, "s"),
        at_most(f"plugins: what {PLUGINS} that nobody uses add", max(0.0, beside - without), "s", 0.1),
    ]
    if alone and among:
        core, all_of_them = side_by_side((alone, {}), (among, {}))
        figures.append(reference("plugins: one sample, the core alone", core, "s"))
        figures.append(at_most("plugins: one sample among broken ones", all_of_them, "s", 1.3 * core))
    return figures


def told(name: str) -> str:
    """The value of an option, taken out of the command line."""
    if name not in sys.argv:
        return ""
    place = sys.argv.index(name)
    value = sys.argv[place + 1]
    del sys.argv[place : place + 2]
    return value


if __name__ == "__main__":
    ALONE, AMONG = told("--alone"), told("--among")
    main(lambda: measure(ALONE, AMONG))

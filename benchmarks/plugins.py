"""What plugins cost a run that uses none of them: fifty whose import takes 0.2 s, and an environment with broken ones.

The second needs environments of wheels, which `nox -s with_broken` makes: --alone PYTHON has the core, --among PYTHON
plugins, too, five of them broken.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench_support import Figure, Run, at_most, environment, folder, main, reference, run

PLUGINS, IMPORT_SECONDS = 50, 0.2
ADDED, FACTOR = 0.1, 1.3  # seconds that fifty may add; what a start among broken ones may take, of one alone
# The first run compiles the bytecode. What else the machine does only ever adds, so the fastest run tells, and more of
# them are made while it is over the limit: on a machine that has much else to do, few runs are undisturbed.
REPEATS, MOST = 7, 30
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


def one_sample(python: str, **env: str) -> Run:
    """One sample of the mock model from start to end, by the interpreter of an environment."""
    with folder() as home:
        (home / "task.py").write_text(TASK)
        command = [python, "-m", "proctor", "eval", str(home / "task.py"), "--model", "mock/model"]
        return run([*command, "--display", "none", "--log-dir", str(home)], env=environment(**env))


def side_by_side(
    first: Callable[[], Run], second: Callable[[], Run], enough: Callable[[list[Run], list[Run]], bool]
) -> tuple[list[Run], list[Run]]:
    """Runs of two kinds, in turn, until there are enough: what else the machine does befalls both."""
    ones: list[Run] = []
    others: list[Run] = []
    while len(ones) < REPEATS or (len(ones) < MOST and not enough(ones, others)):
        ones.append(first())
        others.append(second())
    return ones, others


def wall(runs: Sequence[Run]) -> float:
    """The fastest: what else the machine does only ever adds."""
    return min(run.wall for run in runs)


def cpu(runs: Sequence[Run]) -> float:
    """The least time of the processor."""
    return min(run.cpu for run in runs)


def measure(alone: str = "", among: str = "") -> list[Figure]:
    here = sys.executable
    with folder() as root:
        dummies(root)
        without, beside = side_by_side(
            lambda: one_sample(here),
            lambda: one_sample(here, PYTHONPATH=str(root)),
            lambda ones, others: wall(others) - wall(ones) <= ADDED,
        )
    figures = [
        reference("plugins: one sample of the mock model", wall(without), "s"),
        at_most(f"plugins: what {PLUGINS} that nobody uses add", max(0.0, wall(beside) - wall(without)), "s", ADDED),
        reference(f"plugins: CPU that {PLUGINS} add", max(0.0, cpu(beside) - cpu(without)), "s"),
    ]
    if alone and among:
        core, beside = side_by_side(
            lambda: one_sample(alone),
            lambda: one_sample(among),
            lambda ones, others: wall(others) <= FACTOR * wall(ones),
        )
        figures += [
            reference("plugins: one sample, the core alone", wall(core), "s"),
            at_most("plugins: one sample among broken ones / alone", wall(beside) / wall(core), "x", FACTOR),
            at_most("plugins: CPU among broken ones / alone", cpu(beside) / cpu(core), "x", FACTOR),
        ]
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

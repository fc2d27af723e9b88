"""Containers: 24 sandboxes with 5 commands each, 4 and 8 at once, beside a bare pool of SDK threads in the same run;
and how long a command that will not end outlives its time.

Needs a Docker engine with the image proctor-busybox:latest: `tests/services/docker.sh start`.
"""

from __future__ import annotations

import sys

from bench_support import HERE, Figure, at_most, environment, folder, main, reference, run

IMAGE = "proctor-busybox:latest"
SAMPLES, COMMANDS = 24, 5
AT_ONCE = (4, 8)
ROUNDS = 2
DEAD = 8  # seconds after a command's time in which nothing may be left of it


def _bare(at_once: int) -> float:
    words = [IMAGE, str(SAMPLES), str(COMMANDS), str(at_once)]
    return float(run([sys.executable, str(HERE / "bare_docker.py"), *words], env=environment()).out)


def _proctor(at_once: int) -> tuple[float, float]:
    with folder() as logs:
        words = [IMAGE, str(SAMPLES), str(COMMANDS), str(at_once), str(logs)]
        done = run([sys.executable, str(HERE / "proctor_docker.py"), *words], env=environment())
    return float(done.out.split()[-1]), done.cpu


def _outlived() -> float:
    with folder() as logs:
        return float(run([sys.executable, str(HERE / "stubborn_docker.py"), IMAGE, str(logs)], env=environment()).out)


def measure() -> list[Figure]:
    figures = []
    for at_once in AT_ONCE:
        rounds = [(_bare(at_once), *_proctor(at_once)) for _ in range(ROUNDS)]
        bare, ours, cpu = min(rounds, key=lambda row: row[1] / row[0])
        name = f"docker, {at_once} at once"
        figures += [
            reference(f"{name}: bare SDK threads", bare, "s"),
            reference(f"{name}: evaluation", ours, "s"),
            at_most(f"{name}: evaluation / bare threads", ours / bare, "x", 1.35),
            reference(f"{name}: CPU of the evaluation, start-up included", cpu, "s"),
        ]
    name = "docker: TERM ignored, session left: gone after the time-out"
    return [*figures, at_most(name, max(_outlived() for _ in range(ROUNDS)), "s", DEAD)]


if __name__ == "__main__":
    main(measure)

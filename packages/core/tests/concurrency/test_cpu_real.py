"""The CPU budget under the real things: an affinity mask, and containers of a real Docker engine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docker_engine import IMAGE, DockerEngine

from proctor.concurrency import _cpu

CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
TELL = "import json, sys; sys.path.insert(0, sys.argv[1]); import _cpu; b = _cpu.cpu_budget(); "
TELL += "print(json.dumps([b.cpus, b.source]))"

linux = pytest.mark.skipif(sys.platform != "linux", reason="masks and cgroups are things of Linux")


@linux
def test_taskset_sets_it() -> None:
    taskset = shutil.which("taskset")
    assert taskset is not None, "taskset is missing; on Debian and Ubuntu: apt install util-linux"
    first = min(os.sched_getaffinity(0))
    code = "from proctor.concurrency import cpu_budget as b; print(b().cpus, b().source)"

    command = [taskset, "-c", str(first), sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.split() == ["1", "affinity"]


def in_container(engine: DockerEngine, *options: str) -> tuple[int, str]:
    """The budget that a container of ``options`` has.

    The image has no Python, so this machine's own is mounted, and of the package the one module, which needs no other.
    """
    shown = [Path(sys.base_prefix).resolve(), *map(Path, ("/usr", "/lib", "/lib64"))]
    binds = [word for path in shown if path.exists() for word in ("-v", f"{path}:{path}:ro")]
    module = Path(_cpu.__file__)
    binds += ["-v", f"{module}:/proctor/{module.name}:ro"]
    python = str(Path(sys.base_prefix).resolve() / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")
    answer = engine.run(*options, *binds, IMAGE, python, "-I", "-B", "-c", TELL, "/proctor")
    cpus, source = json.loads(answer)
    return cpus, source


@linux
@pytest.mark.slow
@pytest.mark.skipif(CPUS < 2, reason="the engine refuses more CPUs than there are")
@pytest.mark.parametrize(
    ("options", "cpus", "source"),
    [
        ((), CPUS, "affinity"),
        (("--cpus", "1.5"), 2, "cgroup /"),
        (("--cpus", "0.5"), 1, "cgroup /"),
        (("--cpuset-cpus", "0"), 1, "affinity"),
        (("--cpuset-cpus", "0", "--cpus", "1.5"), 1, "affinity"),
    ],
    ids=lambda value: " ".join(value) or "no limit" if isinstance(value, tuple) else None,
)
def test_a_container_has_what_its_options_give(
    docker_engine: DockerEngine, options: tuple[str, ...], cpus: int, source: str
) -> None:
    assert in_container(docker_engine, *options) == (cpus, source)

"""What the benchmarks share: measured child processes, the model server, figures beside their limits.

Only the standard library: a child's peak memory starts at its parent's, so the parent stays small.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
TASK = HERE / "tasks" / "arithmetic.py"
PEER_TASK = HERE / "peer_tasks" / "arithmetic.py"
PROCTOR = str(Path(sys.executable).parent / "proctor")


@dataclass(frozen=True)
class Figure:
    """One measured number.

    ``ratio`` is 1 at the limit and smaller when better, whichever way the figure counts; both are ``None`` for a figure
    that only stands beside others (a peer, a reference).
    """

    name: str
    figure: float
    unit: str
    limit: float | None = None
    ratio: float | None = None


def at_most(name: str, figure: float, unit: str, limit: float) -> Figure:
    return Figure(name, round(figure, 4), unit, round(limit, 4), round(figure / limit, 3))


def at_least(name: str, figure: float, unit: str, limit: float) -> Figure:
    return Figure(name, round(figure, 4), unit, limit, round(limit / figure, 3))


def reference(name: str, figure: float, unit: str) -> Figure:
    return Figure(name, round(figure, 4), unit)


@dataclass(frozen=True)
class Run:
    """A finished child: wall and CPU seconds, peak resident memory in MB (10^6 bytes), and what it wrote."""

    wall: float
    cpu: float
    peak: float
    out: str


# Without bytecode on disk every start compiles all it imports, which nobody who installed a package ever sees.
_CHANGES_FIGURES = ("PROCTOR_", "INSPECT_", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")


def environment(**extra: str) -> dict[str, str]:
    """The environment of a child: this one without settings that would change what is measured."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_CHANGES_FIGURES)}
    return kept | {"OPENAI_API_KEY": "benchmark"} | extra


def run(command: Sequence[str], *, env: dict[str, str] | None = None, one_core: bool = False) -> Run:
    """Run ``command`` to its end and measure it alone.

    Raises:
        SystemExit: if it fails; its output is shown.
    """
    with tempfile.TemporaryFile("w+") as out:
        prefix = ("taskset", "-c", "0") if one_core else ()
        start = time.perf_counter()
        child = subprocess.Popen([*prefix, *command], stdout=out, stderr=out, env=env or environment())
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    if child.returncode:
        sys.exit(f"{' '.join(command)}\nended with {child.returncode}:\n{text[-4000:]}")
    scale = 1 if sys.platform == "darwin" else 1024  # ru_maxrss: bytes there, KiB on Linux
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * scale / 1e6, text)


def evaluate(log_dir: Path, *arguments: str, one_core: bool = False, **env: str) -> Run:
    """``proctor eval`` of the benchmark's task into ``log_dir``."""
    command = [PROCTOR, "eval", str(TASK), "--display", "none", "--log-dir", str(log_dir), *arguments]
    return run(command, env=environment(**env), one_core=one_core)


def the_log(log_dir: Path) -> Path:
    """The one log in ``log_dir``."""
    [path] = log_dir.glob("*.eval")
    return path


def sampling_seconds(log: Path) -> float:
    """Seconds from the start of the first sample to the end of the last, as the log has them."""
    program = (
        "import sys\n"
        "from datetime import datetime as D\n"
        "from proctor.log import read_eval_log_sample_summaries as read\n"
        "rows = read(sys.argv[1])\n"
        "assert all(row.completed for row in rows), 'a sample did not complete'\n"
        "print(max(D.fromisoformat(r.completed_at).timestamp() for r in rows)"
        " - min(D.fromisoformat(r.started_at).timestamp() for r in rows))\n"
    )
    return float(run([sys.executable, "-c", program, str(log)]).out)


def peer_python() -> str | None:
    """The interpreter of the peer's environment, when there is one."""
    return os.environ.get("PROCTOR_PEER_PYTHON") or None


def peer_command(log_dir: Path, *arguments: str) -> list[str]:
    """The peer's command for the same load."""
    inspect = str(Path(peer_python() or "").parent / "inspect")
    return [inspect, "eval", str(PEER_TASK), "--display", "none", "--log-dir", str(log_dir), *arguments]


@contextmanager
def model_server(latency_ms: int = 100, capacity: int | None = None) -> Iterator[str]:
    """The base URL of an OpenAI-compatible server on loopback.

    Args:
        latency_ms: milliseconds that an answer takes.
        capacity: requests at once beyond which it refuses with 429 and ``Retry-After: 1``.
    """
    node = shutil.which("node")
    if node is None:
        sys.exit("the model server needs Node: apt install nodejs")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [str(port), str(latency_ms), *([] if capacity is None else [str(capacity)])]
    server = subprocess.Popen([node, str(HERE / "model_server.js"), *words])
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait()


def server_counts(url: str) -> dict[str, int]:
    """What a model server counted: ``inflight``, ``total``, ``peak`` and ``rej`` (refused)."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/stats", timeout=30) as answer:
        counts: dict[str, int] = json.load(answer)
    return counts


def _wait_for(port: int) -> None:
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.05)
    sys.exit(f"the model server does not listen on port {port}")


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as name:
        yield Path(name)


def committed() -> dict[str, float]:
    """The figures of the last committed run, by name."""
    if not RESULTS.exists():
        return {}
    return {row["name"]: row["figure"] for row in json.loads(RESULTS.read_text())["figures"]}


def show(figures: Sequence[Figure], before: dict[str, float]) -> None:
    """Print each figure as a line of JSON, with the last committed one beside it."""
    for figure in figures:
        print(json.dumps(asdict(figure) | {"committed": before.get(figure.name)}), flush=True)


def save(figures: Sequence[Figure]) -> None:
    """Write ``results.json``: what is not in ``figures`` stays."""
    rows = {row["name"]: row for row in json.loads(RESULTS.read_text())["figures"]} if RESULTS.exists() else {}
    rows |= {figure.name: asdict(figure) for figure in figures}
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    lines = ",\n    ".join(json.dumps(row) for row in rows.values())
    RESULTS.write_text(f'{{\n  "machine": {json.dumps(machine)},\n  "figures": [\n    {lines}\n  ]\n}}\n')


def main(measure: Callable[[], list[Figure]]) -> None:
    """The command line of one benchmark: measure, print, and exit 1 when a limit is missed (with ``--check``)."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--save", action="store_true", help="write the figures to results.json")
    parser.add_argument("--check", action="store_true", help="exit 1 when a limit is missed")
    options = parser.parse_args()
    figures = measure()
    show(figures, committed())
    if options.save:
        save(figures)
    missed = [figure.name for figure in figures if figure.ratio is not None and figure.ratio > 1]
    if missed:
        print(f"over the limit: {', '.join(missed)}", file=sys.stderr)
        sys.exit(1 if options.check else 0)

"""In-process throughput: the mock model, the log on, everything on one core."""

from __future__ import annotations

import sys
from pathlib import Path

from bench_support import (
    HERE,
    Figure,
    at_least,
    at_most,
    evaluate,
    folder,
    main,
    model_server,
    reference,
    run,
    sampling_seconds,
    the_log,
)

SAMPLES, REQUESTS = 20_000, 4_000
# Where 3,000 samples a second is the target, a request of a bare aiohttp loop takes 0.28 ms of processor time. What
# both take moves with the machine, and on a shared one from minute to minute; what lies between them does not.
RATIO = 1 / 3000 / 0.00028


def _cpu(logs: Path, samples: int) -> float:
    return evaluate(logs, "--model", "mock/model", "-T", f"samples={samples}", one_core=True).cpu


def _bare() -> float:
    """Processor seconds of a request in a bare aiohttp loop."""
    with model_server(latency_ms=100) as url:
        few, many = (run([sys.executable, str(HERE / "bare_client.py"), url, str(n), "100"]).cpu for n in (1, REQUESTS))
    return (many - few) / REQUESTS


def measure() -> list[Figure]:
    bare = _bare()
    with folder() as logs, folder() as few:
        cpu = (_cpu(logs, SAMPLES) - _cpu(few, 1)) / SAMPLES
        sampling = sampling_seconds(the_log(logs))
    return [
        reference("in process: CPU of a bare aiohttp request", bare * 1000, "ms"),
        at_most("in process: CPU of a sample / bare aiohttp request", cpu / bare, "x", RATIO),
        # By processor time: on one core that is the clock's when nothing else runs, and steady when something does.
        at_least("in process: samples per second of one core", 1 / cpu, "1/s", 3000),
        reference("in process: samples per second by the clock", SAMPLES / sampling, "1/s"),
    ]


if __name__ == "__main__":
    main(measure)

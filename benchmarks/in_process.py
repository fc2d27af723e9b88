"""In-process throughput: the mock model, the log on, everything on one core."""

from __future__ import annotations

from pathlib import Path

from bench_support import Figure, at_least, evaluate, folder, main, reference, sampling_seconds, the_log

SAMPLES = 20_000


def _cpu(logs: Path, samples: int) -> float:
    return evaluate(logs, "--model", "mock/model", "-T", f"samples={samples}", one_core=True).cpu


def measure() -> list[Figure]:
    with folder() as logs, folder() as few:
        cpu = _cpu(logs, SAMPLES) - _cpu(few, 1)
        sampling = sampling_seconds(the_log(logs))
    return [
        # By processor time: on one core that is the clock's when nothing else runs, and steady when something does.
        at_least("in process: samples per second of one core", SAMPLES / cpu, "1/s", 3000),
        reference("in process: samples per second by the clock", SAMPLES / sampling, "1/s"),
    ]


if __name__ == "__main__":
    main(measure)

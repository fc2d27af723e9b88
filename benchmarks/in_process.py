"""In-process throughput: the mock model, the log on, everything on one core."""

from __future__ import annotations

from bench_support import Figure, at_least, at_most, evaluate, folder, main, sampling_seconds, the_log

SAMPLES = 20_000


def measure() -> list[Figure]:
    with folder() as logs:
        done = evaluate(logs, "--model", "mock/model", "-T", f"samples={SAMPLES}", one_core=True)
        sampling = sampling_seconds(the_log(logs))
    return [
        at_least("in process: samples on one core", SAMPLES / sampling, "1/s", 3000),
        at_most("in process: CPU per sample, start-up included", done.cpu / SAMPLES * 1000, "ms", 0.4),
    ]


if __name__ == "__main__":
    main(measure)

"""Peak memory of an evaluation with the mock model: 120 MB and 0.3 KB a sample, at three sizes."""

from __future__ import annotations

from bench_support import Figure, at_most, evaluate, folder, main

SIZES = (1_000, 10_000, 100_000)


def measure() -> list[Figure]:
    figures = []
    for samples in SIZES:
        with folder() as logs:
            done = evaluate(logs, "--model", "mock/model", "-T", f"samples={samples}")
        figures.append(at_most(f"memory: {samples:,} samples", done.peak, "MB", 120 + 0.0003 * samples))
    return figures


if __name__ == "__main__":
    main(measure)

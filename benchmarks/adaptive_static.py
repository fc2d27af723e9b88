"""Adaptive connections beside the best static setting, for hidden capacities of 5, 40 and 400: 60 s each, ideally."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from bench_support import Figure, at_most, evaluate, folder, main, model_server, reference, sampling_seconds, the_log

SECONDS = 60
SETTINGS = {5: "1-20-100", 40: "1-20-100", 400: "1-20-600"}  # the most is above the capacity
LIMITS = {5: 1.05, 40: 1.05, 400: 1.08}


def _sampling(capacity: int, *connections: str) -> float:
    with model_server(1000, capacity) as url, folder() as logs:
        samples = capacity * SECONDS
        evaluate(logs, "--model", "openai/gpt-4o-mini", "-T", f"samples={samples}", *connections, OPENAI_BASE_URL=url)
        return sampling_seconds(the_log(logs))


def _both(capacity: int) -> list[Figure]:
    adaptive = _sampling(capacity, "--adaptive-connections", SETTINGS[capacity])
    static = _sampling(capacity, "--max-connections", str(capacity))
    name = f"adaptive, asking a server: capacity {capacity}"  # the simulation has figures of its own
    return [
        reference(f"{name}, best static setting", static, "s"),
        at_most(f"{name} / best static", adaptive / static, "x", LIMITS[capacity]),
    ]


def measure() -> list[Figure]:
    with ThreadPoolExecutor() as pool:  # 5 and 40 requests a second leave the machine idle: they run side by side
        small = [figure for figures in pool.map(_both, (5, 40)) for figure in figures]
    return small + _both(400)


if __name__ == "__main__":
    main(measure)

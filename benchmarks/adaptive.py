"""Adaptive connections against a server with a hidden capacity: 1,200 samples of 1 s, 40 at once (ideal: 30.0 s)."""

from __future__ import annotations

from bench_support import (
    Figure,
    at_most,
    environment,
    evaluate,
    folder,
    main,
    model_server,
    peer_command,
    peer_python,
    reference,
    run,
    sampling_seconds,
    server_counts,
    the_log,
)

SAMPLES, CAPACITY = 1200, 40
ARGUMENTS = ("--model", "openai/gpt-4o-mini", "-T", f"samples={SAMPLES}")


def _peer() -> list[Figure]:
    if peer_python() is None:
        return []
    with model_server(1000, CAPACITY) as url, folder() as logs:
        done = run(peer_command(logs, *ARGUMENTS), env=environment(OPENAI_BASE_URL=url))
        refused = server_counts(url)["rej"]
    return [
        reference("adaptive: wall, peer", done.wall, "s"),
        reference("adaptive: refusals, peer", refused, "requests"),
    ]


def measure() -> list[Figure]:
    with model_server(1000, CAPACITY) as url, folder() as logs:
        done = evaluate(logs, *ARGUMENTS, OPENAI_BASE_URL=url)
        sampling = sampling_seconds(the_log(logs))
        refused = server_counts(url)["rej"]
    ideal = SAMPLES / CAPACITY
    return [
        reference("adaptive: sampling / ideal", sampling / ideal, "x"),
        at_most("adaptive: wall", done.wall, "s", 33.0),
        at_most("adaptive: refusals", refused, "requests", 19),
        *_peer(),
    ]


if __name__ == "__main__":
    main(measure)

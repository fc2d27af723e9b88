"""HTTP throughput: 2,000 samples of 100 ms over 100 connections, beside a bare aiohttp loop in the same run."""

from __future__ import annotations

import sys

from bench_support import (
    HERE,
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
    the_log,
)

SAMPLES, CONNECTIONS = 2000, 100
ARGUMENTS = ("--model", "openai/gpt-4o-mini", "--max-connections", str(CONNECTIONS), "-T", f"samples={SAMPLES}")
ROUNDS = 3


def _bare(url: str) -> float:
    command = [sys.executable, str(HERE / "bare_client.py"), url, str(SAMPLES), str(CONNECTIONS)]
    return float(run(command).out)


def _proctor(url: str) -> tuple[float, float, float, float]:
    with folder() as logs:
        done = evaluate(logs, *ARGUMENTS, OPENAI_BASE_URL=url)
        sampling = sampling_seconds(the_log(logs))
    return sampling, done.wall - sampling, done.cpu, done.peak


def _peer(url: str) -> list[Figure]:
    if peer_python() is None:
        return []
    with folder() as logs:
        # Samples in flight are bounded beside connections there; without this it would keep 100 connections half idle.
        command = peer_command(logs, *ARGUMENTS, "--max-samples", str(2 * CONNECTIONS))
        done = run(command, env=environment(OPENAI_BASE_URL=url))
    return [
        reference("http: wall, peer", done.wall, "s"),
        reference("http: CPU per sample, peer", done.cpu / SAMPLES * 1000, "ms"),
        reference("http: peak memory, peer", done.peak, "MB"),
    ]


def measure() -> list[Figure]:
    with model_server(latency_ms=100) as url:
        _bare(url)  # the server's own code gets compiled
        rounds = [(_bare(url), *_proctor(url)) for _ in range(ROUNDS)]
        peer = _peer(url)
    bare, sampling, startup, cpu, peak = min(rounds, key=lambda row: row[1] / row[0])
    return [
        reference("http: bare aiohttp loop", bare, "s"),
        at_most("http: sampling / bare loop", sampling / bare, "x", 1.2),
        reference("http: sampling", sampling, "s"),
        at_most("http: start-up and end", startup, "s", 1.4),
        at_most("http: CPU per sample, start-up included", cpu / SAMPLES * 1000, "ms", 1.0 + 1400 / SAMPLES),
        at_most("http: peak memory", peak, "MB", 120 + 0.0003 * SAMPLES),
        *peer,
    ]


if __name__ == "__main__":
    main(measure)

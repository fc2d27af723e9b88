"""Bedrock: 2,000 calls of 100 ms over 100 connections, beside a bare pool of boto3 threads in the same run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench_support import (
    HERE,
    Figure,
    at_most,
    environment,
    evaluate,
    folder,
    main,
    reference,
    run,
    sampling_seconds,
    the_log,
)

SAMPLES, CONNECTIONS, LATENCY = 2000, 100, 100  # milliseconds
ARGUMENTS = (
    *("--model", "bedrock/us.amazon.nova-lite-v1:0"),
    *("--max-connections", str(CONNECTIONS), "-T", f"samples={SAMPLES}"),
)
ACCOUNT = {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "benchmark", "AWS_SECRET_ACCESS_KEY": "benchmark"}
ROUNDS = 3


@contextmanager
def _bedrock() -> Iterator[str]:
    """The address of a fake Bedrock in a process of its own."""
    command = [sys.executable, str(HERE / "bedrock_server.py"), str(LATENCY)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None and server.stdout is not None
    try:
        yield server.stdout.readline().strip()
    finally:
        server.stdin.close()
        server.wait()
        server.stdout.close()


def _bare(url: str) -> tuple[float, float]:
    command = [sys.executable, str(HERE / "bare_boto3.py"), url, str(SAMPLES), str(CONNECTIONS)]
    done = run(command, env=environment(**ACCOUNT))
    return float(done.out), done.cpu


def _proctor(url: str) -> tuple[float, float, float, float]:
    with folder() as logs:
        done = evaluate(logs, *ARGUMENTS, one_core=False, BEDROCK_BASE_URL=url, **ACCOUNT)
        sampling = sampling_seconds(the_log(logs))
    return sampling, done.wall - sampling, done.cpu, done.peak


def measure() -> list[Figure]:
    with _bedrock() as url:
        rounds = [(*_bare(url), *_proctor(url)) for _ in range(ROUNDS)]
    bare, bare_cpu, sampling, startup, cpu, peak = min(rounds, key=lambda row: row[2] / row[0])
    return [
        reference("bedrock: bare boto3 threads", bare, "s"),
        at_most("bedrock: sampling / bare threads", sampling / bare, "x", 1.5),
        reference("bedrock: sampling", sampling, "s"),
        reference("bedrock: start-up and end", startup, "s"),
        # Both are bound by the interpreter's lock: what they cost in CPU says more than the wall of a busy machine.
        reference("bedrock: CPU per call, bare, start-up included", bare_cpu / SAMPLES * 1000, "ms"),
        reference("bedrock: CPU per sample, start-up included", cpu / SAMPLES * 1000, "ms"),
        reference("bedrock: peak memory", peak, "MB"),
    ]


if __name__ == "__main__":
    main(measure)

"""Start-up: `proctor --version`, `import proctor`, and an evaluation of one sample through the OpenAI provider."""

from __future__ import annotations

import statistics
import sys

from bench_support import (
    PROCTOR,
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
)

REPEATS = 7


def _median(command: list[str]) -> float:
    return statistics.median(run(command).wall for _ in range(REPEATS))


def _one_sample(url: str) -> float:
    with folder() as logs:
        arguments = ("--model", "openai/gpt-4o-mini", "-T", "samples=1")
        return evaluate(logs, *arguments, OPENAI_BASE_URL=url).wall


def _peer(url: str) -> list[Figure]:
    python = peer_python()
    if python is None:
        return []
    with folder() as logs:
        command = peer_command(logs, "--model", "openai/gpt-4o-mini", "-T", "samples=1")
        run(command, env=environment(OPENAI_BASE_URL=url))  # compiles its bytecode
        wall = run(command, env=environment(OPENAI_BASE_URL=url)).wall
    return [
        reference("start-up: one sample, peer", wall, "s"),
        reference("start-up: --version, peer", _median([command[0], "--version"]), "s"),
    ]


def measure() -> list[Figure]:
    bare = _median([sys.executable, "-c", "pass"])
    imported = _median([sys.executable, "-c", "import proctor"])
    with model_server(latency_ms=0) as url:
        _one_sample(url)  # compiles the bytecode
        one = statistics.median(_one_sample(url) for _ in range(3))
        peer = _peer(url)
    return [
        reference("start-up: bare interpreter", bare, "s"),
        at_most("start-up: --version", _median([PROCTOR, "--version"]), "s", 0.15),
        at_most("start-up: import proctor", imported - bare, "s", 0.1),
        at_most("start-up: one sample, openai", one, "s", 1.4),
        *peer,
    ]


if __name__ == "__main__":
    main(measure)

"""Several models at once, many connections, and what a screen and a live log cost."""

from __future__ import annotations

import os
import pty
import statistics
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from bench_support import (
    PROCTOR,
    TASK,
    Figure,
    at_least,
    at_most,
    environment,
    evaluate,
    folder,
    main,
    model_server,
    reference,
    run,
    sampling_seconds,
    server_counts,
    the_log,
)

SPEEDS = {"fast": 200, "middle": 500, "slow": 1000}  # milliseconds
SAMPLES, CONNECTIONS = 600, 40
WIDE = 512
LIVE = 5000


def _three_models() -> list[Figure]:
    """Each of three models of unequal speed beside the others, and alone."""
    with ExitStack() as stack:
        urls = {name: stack.enter_context(model_server(latency)) for name, latency in SPEEDS.items()}
        env = {f"{name.upper()}_BASE_URL": url for name, url in urls.items()}
        env |= {f"{name.upper()}_API_KEY": "benchmark" for name in urls}
        load = ("-T", f"samples={SAMPLES}", "--max-connections", str(CONNECTIONS))
        alone = {}
        for name in SPEEDS:
            with folder() as logs:
                _evaluate(logs, env, "--model", f"openai-api/{name}/m", *load)
                alone[name] = sampling_seconds(the_log(logs))
        with folder() as logs:
            _evaluate(logs, env, "--model", ",".join(f"openai-api/{name}/m" for name in SPEEDS), *load)
            together = {_model(log).split("/")[1]: sampling_seconds(log) for log in logs.glob("*.eval")}
    return [
        at_most(f"three models: {name}, together / alone", together[name] / alone[name], "x", 1.2) for name in SPEEDS
    ]


def _evaluate(logs: Path, env: dict[str, str], *arguments: str) -> None:
    command = [PROCTOR, "eval", str(TASK), "--display", "none", "--log-dir", str(logs), *arguments]
    run(command, env=environment(**env))


def _model(log: Path) -> str:
    program = "import sys; from proctor.log import read_eval_log as read\nprint(read(sys.argv[1], True).eval.model)"
    return run([sys.executable, "-c", program, str(log)]).out.strip()


def _wide() -> list[Figure]:
    """How many of 512 connections are in flight while there are samples for them."""
    seen: list[int] = []
    over = threading.Event()
    with model_server(1000) as url, folder() as logs:

        def watch() -> None:
            while not over.wait(0.05):
                seen.append(server_counts(url)["inflight"])

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            arguments = ("--max-connections", str(WIDE), "-T", f"samples={10 * WIDE}")
            evaluate(logs, "--model", "openai/gpt-4o-mini", *arguments, OPENAI_BASE_URL=url)
        finally:
            over.set()
            watcher.join()
    busy = [count for count in seen if count]
    return [at_least("512 connections: median in flight", statistics.median(busy), "requests", 490)]


def _live() -> list[Figure]:
    """5,000 samples with a screen on a terminal and the samples in the log, and without both."""
    with model_server(100) as url:
        on, off = zip(*((_timed(url, live=True), _timed(url, live=False)) for _ in range(2)), strict=True)
    return [
        reference("screen and log off", min(off), "s"),
        at_most("screen and log on / off", min(on) / min(off), "x", 1.2),
    ]


def _timed(url: str, *, live: bool) -> float:
    with folder() as logs:
        arguments = ["--model", "openai/gpt-4o-mini", "--max-connections", "100", "-T", f"samples={LIVE}"]
        arguments += ["--display", "rich"] if live else ["--display", "none", "--no-log-samples"]
        ours, theirs = pty.openpty()
        drain = threading.Thread(target=_drain, args=(ours,), daemon=True)
        drain.start()
        start = time.perf_counter()
        subprocess.run(
            [PROCTOR, "eval", str(TASK), "--log-dir", str(logs), *arguments],
            env=environment(OPENAI_BASE_URL=url, TERM="xterm-256color", COLUMNS="100", LINES="30"),
            stdout=theirs,
            stderr=theirs,
            check=True,
        )
        wall = time.perf_counter() - start
        os.close(theirs)
        drain.join(timeout=10)
        os.close(ours)
        return wall


def _drain(terminal: int) -> None:
    try:
        while os.read(terminal, 1 << 16):
            pass
    except OSError:  # the other end is closed
        pass


def measure() -> list[Figure]:
    return [*_three_models(), *_wide(), *_live()]


if __name__ == "__main__":
    main(measure)

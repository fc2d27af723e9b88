"""A process that is killed at a moment of its plan."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from child_processes import running
from kill_places import Place
from kill_plan import Moment
from kill_server import CountingServer, Key

__all__ = ["doomed"]


@contextmanager
def doomed(
    command: Sequence[str],
    folder: Path,
    *,
    acks: Path,
    said: Path,
    at: Moment | None,
    place: Place,
    server: CountingServer,
    done: Collection[Key],
) -> Iterator[tuple[subprocess.Popen[Any], Callable[[], None]]]:
    """``command`` in ``folder``, and what kills it; both watch for the moment ``at`` inside of the block.

    Args:
        acks: where it notes what was acknowledged.
        said: where its output goes.
        place: of its logs, at which some moments come.
        server: that it asks, at which others come.
        done: what it need not ask again.
    """
    env = os.environ | {
        "OPENAI_API_KEY": "sk-test-1f2e3d4c5b6a",
        "OPENAI_BASE_URL": server.base_url,
        "KILL_ACKS": str(acks),
    }
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # many processes start
    # Rust's report of a panic needs memory: without any it waits for itself, with the interpreter's lock in hand.
    env.pop("RUST_BACKTRACE", None)
    if at is not None and at.kind not in ("request", "put"):
        env["KILL_AT"] = f"{at.kind}:{at.count}:{at.share}"
    with said.open("w") as output, running(command, cwd=folder, env=env, stdout=output, stderr=output) as process:

        def kill() -> None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        def arrived(count: int) -> None:
            if at is not None and at.kind == "request" and count == at.count:
                kill()

        with place.during(at, kill), server.during(frozenset(done), arrived):
            yield process, kill

"""Other processes that use a log store."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from multiprocessing.connection import Connection
from typing import Literal

from proctor.contracts import LogBusyError, LogLease, LogSink
from proctor_testkit._store_checks import Opener

__all__ = ["Elsewhere", "elsewhere"]

_PATIENCE = 60.0  # seconds that a process has to answer


class Elsewhere:
    """A process that has made or held a log, or was refused it."""

    def __init__(self, opener: Opener, name: str, what: Literal["create", "hold"]) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._ours, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_use, args=(opener, name, what, theirs), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def answer(self) -> str:
        """``done``, ``refused``, or what else happened there."""
        if not self._ours.poll(_PATIENCE):
            return "no answer"
        try:
            return str(self._ours.recv())
        except EOFError:
            return "it died"

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._process.join(_PATIENCE)

    def close(self) -> None:
        """Let it give up the log and end."""
        self._ours.close()
        self._process.join(_PATIENCE)
        if self._process.is_alive():
            self.kill()
        self._process.close()


@contextmanager
def elsewhere(opener: Opener, name: str, what: Literal["create", "hold"], count: int) -> Iterator[list[Elsewhere]]:
    """``count`` processes that each create or hold the log ``name``, and keep it until the block is left."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Elsewhere(opener, name, what))) for _ in range(count)]


def _use(opener: Opener, name: str, what: str, pipe: Connection) -> None:
    taken: LogSink | LogLease | None = None
    try:
        store = opener()
        if what == "create":
            taken = store.create(name)
            taken.commit(b"one", b"")
        else:
            taken = store.hold(name)
        pipe.send("done")
    except (FileExistsError, LogBusyError):
        pipe.send("refused")
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
    try:
        pipe.recv()
    except EOFError:  # the block was left
        if taken is not None:
            taken.close()

"""Child processes that no test leaves behind, however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

__all__ = ["running"]

_LEFT = 30  # seconds that a killed child has to be gone
# Where the tests themselves are killed, nothing here can kill the child. (Linux looks at the thread that started it.)
_DIES_WITH_US = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


@contextmanager
def running(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """``command`` in a process group of its own, all of which is killed when the block is left, in whatever way.

    ``with subprocess.Popen(...)`` waits for the child instead, so that a test that fails in the block hangs.
    ``options`` are those of ``subprocess.Popen``.
    """
    child = subprocess.Popen([*_DIES_WITH_US, *command], start_new_session=True, **options)
    try:
        yield child
    finally:
        # The group and not the child: a child that has ended may have left its own children, with its pipes.
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe is not None:
                with suppress(OSError):  # what is still in the buffer has no reader any more
                    pipe.close()
        child.wait(_LEFT)

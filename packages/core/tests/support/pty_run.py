"""A program in a pseudo-terminal, whose window an emulator shows."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Self

from child_processes import running
from terminal_emulator import Terminal

__all__ = ["PtyRun"]


def _as_from_a_shell() -> None:
    """What was started in the background ignores these, and so would its children."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


class PtyRun:
    """Runs ``command`` in a pseudo-terminal of ``width`` x ``height`` that does not echo.

    ``terminal`` is what a person sees, ``raw`` all that was written. As a context manager it ends the program.
    """

    def __init__(
        self, command: Sequence[str], *, width: int, height: int, env: Mapping[str, str], cwd: str | None = None
    ) -> None:
        self.terminal = Terminal(width, height)
        self.raw = ""
        self._master, slave = pty.openpty()
        attributes = termios.tcgetattr(slave)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        self._size(width, height)
        clean = {name: value for name, value in env.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        self._stack = ExitStack()
        self._stack.callback(os.close, self._master)
        program = running(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            preexec_fn=_as_from_a_shell,
            env={"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **clean},
        )
        self.process = self._stack.enter_context(program)
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def wait_for(self, text: str) -> None:
        """Read until ``text`` stands on the screen."""
        self.wait_until(lambda shown: text in shown, repr(text))

    def wait_until(self, seen: Callable[[str], bool], what: str = "it") -> None:
        """Read until the screen shows what ``seen`` looks for."""
        while not seen(self.terminal.text):
            if not self._read():
                raise AssertionError(f"{what} never came:\n{self.terminal.text}")

    @property
    def cooked(self) -> bool:
        """Whether the terminal hands over whole lines, and makes signals of keys, as a shell leaves it."""
        mode = termios.tcgetattr(self._master)[3]
        return bool(mode & termios.ICANON and mode & termios.ISIG)

    def enter(self) -> None:
        """Press the enter key."""
        os.write(self._master, b"\n")

    def resize(self, width: int, height: int) -> None:
        """Change the window."""
        self._size(width, height)
        self.terminal.resize(width, height)

    def finish(self) -> int:
        """Read to the end and return the exit code."""
        while self._read():
            pass
        return self.process.wait(60)

    def _read(self) -> bool:
        try:
            chunk = os.read(self._master, 65536).decode("utf-8", "replace")
        except OSError:  # the other end is closed: Linux says EIO
            return False
        self.raw += chunk
        self.terminal.feed(chunk)
        return bool(chunk)

    def _size(self, width: int, height: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

"""The rich screen in a real pseudo-terminal whose window changes its size."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from display_snapshots import finished
from terminal_emulator import Terminal

from proctor.display import report_text

SUPPORT = Path(__file__).parents[1] / "support"


class PtyRun:
    """The demo in a pseudo-terminal; each ``step`` waits until the frame of that step is there."""

    def __init__(self, steps: int, width: int, height: int, **env: str) -> None:
        self.terminal = Terminal(width, height)
        self._master, slave = pty.openpty()
        attributes = termios.tcgetattr(slave)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        self._size(width, height)
        clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        self._process = subprocess.Popen(
            [sys.executable, str(SUPPORT / "display_demo.py"), str(steps)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**clean, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **env},
        )
        os.close(slave)
        self._output = ""

    def wait_for(self, text: str) -> None:
        while text not in self.terminal.text:
            chunk = os.read(self._master, 65536).decode("utf-8", "replace")
            self._output += chunk
            self.terminal.feed(chunk)

    def step(self) -> None:
        os.write(self._master, b"\n")

    def resize(self, width: int, height: int) -> None:
        self._size(width, height)
        self.terminal.resize(width, height)

    def finish(self) -> int:
        while True:
            try:
                chunk = os.read(self._master, 65536)
            except OSError:  # the other end is closed: Linux says EIO
                break
            if not chunk:
                break
            self._output += chunk.decode("utf-8", "replace")
            self.terminal.feed(chunk.decode("utf-8", "replace"))
        os.close(self._master)
        return self._process.wait()

    @property
    def raw(self) -> str:
        return self._output

    def _size(self, width: int, height: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a thing of POSIX")
def test_a_real_terminal_is_drawn_over_through_resizes_and_left_clean() -> None:
    run = PtyRun(steps=4, width=100, height=30)
    run.wait_for("10/50")
    run.step()
    run.wait_for("0:01 ·")
    run.resize(50, 30)
    run.step()
    run.wait_for("0:02 ·")
    run.resize(140, 30)
    run.step()
    run.wait_for("0:03 ·")
    run.step()
    assert run.finish() == 0
    assert run.terminal.text.splitlines() == ["task code prints", *report_text([finished()])]
    assert run.terminal.unknown == []


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a thing of POSIX")
def test_a_dumb_terminal_gets_plain_lines() -> None:
    run = PtyRun(steps=1, width=80, height=24, TERM="dumb")
    run.wait_for("50 samples")
    run.step()
    assert run.finish() == 0
    assert "\x1b" not in run.raw
    assert run.terminal.text.splitlines()[0] == "quiz · mock/model · 50 samples"

"""The rich screen in a real pseudo-terminal whose window changes its size."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from display_snapshots import finished
from pty_run import PtyRun

from proctor.display import report_text

DEMO = Path(__file__).parents[1] / "support" / "display_demo.py"


def start(steps: int, width: int, height: int, **env: str) -> PtyRun:
    """The demo, which draws a frame at the start and after each enter."""
    command = [sys.executable, str(DEMO), str(steps)]
    return PtyRun(command, width=width, height=height, env={**os.environ, "TERM": "xterm-256color", **env})


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a thing of POSIX")
def test_a_real_terminal_is_drawn_over_through_resizes_and_left_clean() -> None:
    with start(steps=4, width=100, height=30) as run:
        run.wait_for("10/50")
        run.enter()
        run.wait_for("0:01 ·")
        run.resize(50, 30)
        run.enter()
        run.wait_for("0:02 ·")
        run.resize(140, 30)
        run.enter()
        run.wait_for("0:03 ·")
        run.enter()
        assert run.finish() == 0
    assert run.terminal.text.splitlines() == ["task code prints", *report_text([finished()])]
    assert run.terminal.unknown == []


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a thing of POSIX")
def test_a_dumb_terminal_gets_plain_lines() -> None:
    with start(steps=1, width=80, height=24, TERM="dumb") as run:
        run.wait_for("50 samples")
        run.enter()
        assert run.finish() == 0
    assert "\x1b" not in run.raw
    assert run.terminal.text.splitlines()[0] == "quiz · mock/model · 50 samples"

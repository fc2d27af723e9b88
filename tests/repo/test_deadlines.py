"""The helper that ends a wait for a child's output."""

from __future__ import annotations

import subprocess
import sys

from child_processes import running
from deadlines import killed_after


def test_who_waits_for_the_output_of_a_silent_child_sees_its_end() -> None:
    code = "import time; time.sleep(3600)"
    with running([sys.executable, "-c", code], stdout=subprocess.PIPE) as child, killed_after(child, 0.01):
        assert child.stdout is not None and child.stdout.readline() == b""


def test_a_child_that_answers_in_time_lives_on() -> None:
    with running(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        for word in (b"one\n", b"two\n"):
            with killed_after(child):
                child.stdin.write(word)
                child.stdin.flush()
                assert child.stdout.readline() == word
        assert child.poll() is None

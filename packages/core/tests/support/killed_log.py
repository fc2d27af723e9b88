"""A log whose run was killed in the middle of its work, and the samples that it had acknowledged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from child_processes import running
from deadlines import killed_after

_SCRIPT = Path(__file__).parent / "log_until_killed.py"


def killed_log(folder: Path, format: str, acknowledged: int) -> tuple[str, list[int]]:
    """The location of the log, and the ids that were acknowledged before SIGKILL; at least ``acknowledged`` of them."""
    command = [sys.executable, str(_SCRIPT), str(folder), format]
    with running(command, stdout=subprocess.PIPE, text=True) as process, killed_after(process):
        assert process.stdout is not None
        location = process.stdout.readline().strip()
        ids = [int(process.stdout.readline()) for _ in range(acknowledged)]
        process.kill()
        ids += [int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    return location, ids

"""The real peer as a process that answers questions about logs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from child_processes import running
from deadlines import killed_after

HERE = Path(__file__).parent


class Peer:
    """Inspect AI, asked line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, question: str, **arguments: Any) -> Any:
        """The answer to a question of ``peer_reader.py``; paths may be ``Path``.

        Raises:
            AssertionError: the peer raised, or warned, or did not answer in time.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        with killed_after(self._process):
            self._process.stdin.write(json.dumps([question, arguments], default=str) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        assert line, f"the peer gave no answer to {question!r} about {arguments}"
        answer = json.loads(line)
        assert "error" not in answer, f"the peer: {answer['error']}"
        return answer["value"]


@pytest.fixture(scope="session")
def peer() -> Iterator[Peer]:
    """Inspect AI in the Python that ``PROCTOR_PEER_PYTHON`` names."""
    python = os.environ.get("PROCTOR_PEER_PYTHON")
    if not python:
        reason = "PROCTOR_PEER_PYTHON names no Python with Inspect AI; `nox -s peers` makes one"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    command = [python, str(HERE / "peer_reader.py")]
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Peer(process)


@pytest.fixture(scope="session")
def sample_logs() -> Path:
    """The folder of logs that the peer wrote."""
    return HERE.parent / "data" / "eval-logs"

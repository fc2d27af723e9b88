"""The real peer as a process that answers questions about logs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


class Peer:
    """Inspect AI, asked line by line."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, str(HERE / "peer_reader.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, question: str, **arguments: Any) -> Any:
        """The answer to a question of ``peer_reader.py``; paths may be ``Path``.

        Raises:
            AssertionError: the peer raised, or warned.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([question, arguments], default=str) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, f"the peer: {answer['error']}"
        return answer["value"]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


@pytest.fixture(scope="session")
def peer() -> Iterator[Peer]:
    """Inspect AI in the Python that ``PROCTOR_PEER_PYTHON`` names."""
    python = os.environ.get("PROCTOR_PEER_PYTHON")
    if not python:
        reason = "PROCTOR_PEER_PYTHON names no Python with Inspect AI; `nox -s peers` makes one"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    found = Peer(python)
    yield found
    found.close()


@pytest.fixture(scope="session")
def sample_logs() -> Path:
    """The folder of logs that the peer wrote."""
    return HERE.parent / "data" / "eval-logs"

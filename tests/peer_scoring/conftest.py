"""The real Inspect AI as the judge of our scoring."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

HERE = Path(__file__).parent

Ask: TypeAlias = Callable[[str, list[dict[str, Any]]], list[Any]]


@pytest.fixture(scope="session")
def ask_peer(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Asks a question of ``peer_scoring.py`` about many cases at once, in the Python of ``PROCTOR_PEER_PYTHON``."""
    python = os.environ.get("PROCTOR_PEER_PYTHON")
    if not python:
        reason = "PROCTOR_PEER_PYTHON names no Python with Inspect AI; `nox -s peers` makes one"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("peer")

    def ask(question: str, cases: list[dict[str, Any]]) -> list[Any]:
        answers = folder / f"{question}.json"
        done = subprocess.run(
            [python, str(HERE / "peer_scoring.py"), str(answers)],
            input=json.dumps([question, cases]),
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=200,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        found = json.loads(answers.read_text("utf-8"))
        assert isinstance(found, list) and len(found) == len(cases)
        return found

    return ask


@pytest.fixture(scope="session")
def same() -> Callable[[Any, Any], bool]:
    """Whether two answers are equal, numbers to 1e-9; NaN and infinities are texts in what the peer tells."""

    def equal(mine: Any, theirs: Any) -> bool:
        if isinstance(theirs, dict):
            return (
                isinstance(mine, dict)
                and mine.keys() == theirs.keys()
                and all(equal(mine[key], theirs[key]) for key in theirs)
            )
        if isinstance(theirs, list):
            return (
                isinstance(mine, (list, tuple))
                and len(mine) == len(theirs)
                and all(equal(one, other) for one, other in zip(mine, theirs, strict=True))
            )
        if theirs in ("NaN", "inf", "-inf") and isinstance(mine, float):
            return str(mine).replace("nan", "NaN") == theirs
        if isinstance(mine, float) or isinstance(theirs, float):
            numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (mine, theirs))
            return numbers and math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-9)
        return bool(mine == theirs)

    return equal

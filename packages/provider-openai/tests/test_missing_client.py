"""The HTTP library of the running back-end is not installed: one paragraph, before any request."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

QUIZ = """
from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes

@task
def quiz():
    return Task(dataset=[Sample(input="1 + 1?", target="2")], scorer=includes())
"""
# A module that is None can't be imported: as if it was not there.
PROGRAM = """
import sys
sys.modules[sys.argv.pop(1)] = None
from proctor.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(("backend", "library"), [("asyncio", "aiohttp"), ("trio", "httpx2")])
def test_the_library_of_the_back_end_is_named(tmp_path: Path, backend: str, library: str) -> None:
    (tmp_path / "quiz.py").write_text(QUIZ)
    options = ["--model", "openai/gpt-4o-mini", "--async-backend", backend, "--log-dir", "logs"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, library, "eval", "quiz.py", *options],
        cwd=tmp_path,
        # Nothing listens there: a request would show as another error.
        env={**os.environ, "OPENAI_API_KEY": "key-1234", "OPENAI_BASE_URL": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 2, done.stderr
    [told] = done.stderr.strip().splitlines()
    assert told.startswith("Error: The model provider 'openai' of proctor-provider-openai")
    assert f"needs the Python package '{library}'" in told and f"`pip install '{library}" in told
    assert not done.stdout and not list((tmp_path / "logs").glob("*"))


def test_the_other_library_is_not_missed(tmp_path: Path) -> None:
    (tmp_path / "quiz.py").write_text(QUIZ)
    options = ["--model", "openai/m", "--dry-run", "--async-backend", "trio"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "aiohttp", "eval", "quiz.py", *options],
        cwd=tmp_path,
        env={**os.environ, "OPENAI_API_KEY": "key-1234"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr

"""The SDK or the credentials are not there: one paragraph, before any request."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
if (missing := sys.argv.pop(1)) != "nothing":
    sys.modules[missing] = None
from proctor.cli import main
sys.exit(main())
"""


def refused(folder: Path, missing: str) -> str:
    """What is said to somebody who lacks a module."""
    (folder / "quiz.py").write_text(QUIZ)
    model = "bedrock/arn:aws:bedrock:us-east-1:123456789012:imported-model/abcdefgh1234"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, missing, "eval", "quiz.py", "--model", model, "--log-dir", "logs"],
        cwd=folder,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 2, done.stderr
    assert not done.stdout and not list((folder / "logs").glob("*"))
    [told] = done.stderr.strip().splitlines()
    return told


def test_a_missing_sdk_is_said_with_the_command_that_adds_it(tmp_path: Path) -> None:
    told = refused(tmp_path, "boto3")

    assert told.startswith("Error: The model provider 'bedrock' of proctor-provider-bedrock")
    assert "needs the Python package 'boto3'" in told and "`pip install 'boto3" in told


def test_missing_credentials_are_said_with_what_to_set(tmp_path: Path) -> None:
    told = refused(tmp_path, "nothing")

    assert "there are no AWS credentials" in told and "AWS_ACCESS_KEY_ID" in told and "-M profile" in told

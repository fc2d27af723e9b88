"""``proctor acme``, as the command line runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from proctor import Task
from proctor import eval as evaluate
from proctor.cli import main
from proctor.dataset import Sample
from proctor.scorer import includes


@pytest.fixture
def logs(tmp_path: Path) -> str:
    """A folder with two logs of one task."""
    task = Task(name="greeting", dataset=[Sample(input="Hello?", target="Default")], scorer=includes())
    for _ in range(2):
        evaluate(task, model="mock/model", log_dir=str(tmp_path), display="none")
    return str(tmp_path)


def test_it_counts_the_logs_of_each_task(logs: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["acme", "--log-dir", logs])

    assert code == 0
    assert capsys.readouterr().out.split() == ["2", "greeting"]


def test_it_prints_json(logs: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["acme", "--log-dir", logs, "--json"])

    assert json.loads(capsys.readouterr().out) == {"greeting": 2}


def test_a_folder_without_logs_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["acme", "--log-dir", str(tmp_path)]) == 0

    assert "No logs" in capsys.readouterr().out


def test_help_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])

    assert "acme" in capsys.readouterr().out.partition("Commands of plugins:")[2]

"""The logs of a sweep are told apart wherever they are named, with the same numbers as on the screen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor import Task, eval, task
from proctor.cli import main
from proctor.dataset import Sample
from proctor.scorer import includes


@task
def guess(word: str) -> Task:
    """One question."""
    return Task(dataset=[Sample(input="q", target=word)], scorer=includes())


@pytest.fixture(autouse=True)
def _logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    eval([guess("Default"), guess("else")], model="mock/model", display="none", log_dir="logs")


def test_the_list_of_logs_names_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "list"]) == 0
    lines = sorted(
        line.partition("success")[2].split(" logs/")[0].split() for line in capsys.readouterr().out.splitlines()
    )
    assert [" ".join(words) for words in lines] == [
        "1/1 guess word=Default mock/model accuracy 1.000",
        "1/1 guess word=else mock/model accuracy 0.000",
    ]


def test_a_log_without_scores_has_the_count_of_its_samples(capsys: pytest.CaptureFixture[str]) -> None:
    eval(guess("a"), model="mock/model", display="none", log_dir="unscored", score=False)
    assert main(["log", "list", "--log-dir", "unscored"]) == 0
    assert "success    1/1              guess mock/model  unscored" in capsys.readouterr().out


def test_the_label_is_in_the_header(capsys: pytest.CaptureFixture[str]) -> None:
    logs = sorted(map(str, Path("logs").glob("*.eval")))
    assert main(["log", "headers", *logs]) == 0
    headers = json.loads(capsys.readouterr().out)
    assert {header["eval"]["metadata"]["proctor"]["label"] for header in headers} == {"word=Default", "word=else"}

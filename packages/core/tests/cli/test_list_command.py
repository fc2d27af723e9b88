"""``proctor list tasks`` finds tasks without running their files."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from proctor.cli import main

TASKS = '''\
from proctor import Task, task

raise SystemExit("this file must not run")


@task(light=True)
def alpha(subject="astronomy", n: int = 3):
    """The first.

    More.
    """


@task
def beta():
    pass
'''


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "quiz.py").write_text(TASKS)
    (tmp_path / "helper.py").write_text("x = 1\n")
    with mock.patch.dict(os.environ):
        yield


def test_tasks_are_listed_as_eval_takes_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "tasks"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "inner/quiz.py@alpha  The first.",
        "    -T subject='astronomy', n=3",
        "inner/quiz.py@beta",
    ]


def test_the_list_is_there_for_machines_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "tasks", "inner", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found[0] == {
        "file": "inner/quiz.py",
        "name": "alpha",
        "attribs": {"light": True},
        "doc": "The first.",
        "params": {"subject": "'astronomy'", "n": "3"},
    }


@pytest.mark.parametrize(
    ("filters", "names"), [(["light=true"], ["alpha"]), (["light~=true"], ["beta"]), (["light=false"], [])]
)
def test_attributes_choose(filters: list[str], names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "tasks", "--json", *(word for text in filters for word in ("-F", text))]) == 0
    assert [task["name"] for task in json.loads(capsys.readouterr().out)] == names


def test_a_named_file_that_is_no_python_is_an_error_even_without_the_word_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "syntax.py").write_text("def x(:")
    assert main(["list", "tasks", "syntax.py"]) == 2
    assert "syntax.py:1 is no Python" in capsys.readouterr().err


def test_a_file_that_is_no_python_is_an_error_when_named_and_a_warning_in_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.py").write_text("from proctor import task\n\n@task\ndef t(:\n")
    assert main(["list", "tasks", "broken.py"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: broken.py:4 ")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["list", "tasks"]) == 0
    captured = capsys.readouterr()
    assert "inner/quiz.py@alpha" in captured.out
    [line] = captured.err.splitlines()
    assert line.startswith("Warning: broken.py:4 ")


def test_paths_can_be_absolute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "tasks", "--absolute"]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path}/inner/quiz.py@alpha")


def test_nothing_found_says_what_a_task_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "tasks", "helper.py"]) == 0
    assert "@task" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "nowhere"),
        (["-F", "light"], "not NAME=VALUE or NAME~=VALUE: for tasks marked @task(light=True), `-F light=true` lists"),
        (["-F", "=3"], "`-F light=true` lists them"),
        (["-F"], "`proctor list tasks --help` lists what there is"),
        (["--josn"], "`proctor list tasks --help` lists what there is"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "tasks", *arguments]) == 2
    assert says in capsys.readouterr().err

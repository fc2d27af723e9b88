"""Where an error came from: the last line of the task's own code, whatever stands below it."""

from __future__ import annotations

import os
import sysconfig
import traceback
from pathlib import Path

import pytest

from proctor.display import error_place, error_text
from proctor.schema import EvalError

LIBRARY = f"{sysconfig.get_path('stdlib')}/json/decoder.py"


def an_error(*frames: str, message: str = "ValueError('no')") -> EvalError:
    text = "".join(f'  File "{path}", line {line}, in f\n    ...\n' for line, path in enumerate(frames, start=1))
    text = f"Traceback (most recent call last):\n{text}ValueError: no\n"
    return EvalError(message=message, traceback=text, traceback_ansi=text)


@pytest.mark.parametrize(
    ("frames", "folder", "place"),
    [
        (["/t/quiz.py", "/t/helper.py", LIBRARY], "/t", "t/helper.py:2"),
        (["/t/quiz.py", "/elsewhere/mine/shared.py"], "/t", "t/quiz.py:1"),
        (["/elsewhere/mine/shared.py", LIBRARY], "/t", "mine/shared.py:1"),
        (["/t/quiz.py", "/t/.venv/lib/python3.11/site-packages/openai/client.py"], "/t", "t/quiz.py:1"),
        (["/v/site-packages/pack/task.py", LIBRARY], "/v/site-packages/pack", "pack/task.py:1"),
        (["/t/quiz.py", "<string>"], None, "t/quiz.py:1"),
        ([LIBRARY], "/t", ""),
        ([], "/t", ""),
    ],
)
def test_the_last_frame_of_the_task_counts(frames: list[str], folder: str | None, place: str) -> None:
    assert error_place(an_error(*frames), folder) == place


def test_a_file_below_this_folder_is_named_as_seen_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "tasks" / "deep" / "quiz.py"
    assert error_place(an_error(str(file))) == f"{os.path.join('tasks', 'deep', 'quiz.py')}:1"


def test_a_real_traceback_and_this_package_in_it() -> None:
    try:
        error_place(None)  # type: ignore[arg-type]  # so that it raises within the package
    except AttributeError as error:
        text = "".join(traceback.format_exception(error))
    found = error_place(EvalError(message="", traceback=text, traceback_ansi=text), os.path.dirname(__file__))
    assert found.rpartition(":")[0].endswith("test_place.py")


def test_an_error_is_one_line_that_can_be_cut() -> None:
    assert error_text(an_error("/t/q.py", message="ValueError('a\n b')"), "/t") == "t/q.py:1: ValueError('a b')"
    assert error_text(an_error(message="X('gone')")) == "X('gone')"
    assert len(error_text(an_error("/t/q.py", message="x" * 10_000))) < 400

"""What a person sees of an error, and what a script sees: one paragraph, and an exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import click
import pytest
from child_processes import running

from proctor.cli import main, root
from proctor.contracts import PrerequisiteError, UsageError


@pytest.fixture(autouse=True)
def _own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with mock.patch.dict(os.environ):
        yield


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a function in place of every command."""

    def put(function: Any) -> None:
        monkeypatch.setattr(root, "get_command", lambda ctx, name: click.Command(name, callback=function))

    return put


def raising(error: BaseException) -> Any:
    def function() -> NoReturn:
        raise error

    return function


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UsageError("no such task 'x'. Did you mean 'y'?"), 2, "Error: no such task 'x'. Did you mean 'y'?\n"),
        (PrerequisiteError("pip install it"), 2, "Error: pip install it\n"),
        (
            click.ClickException("bad.\n\tOne,\n\ttwo"),
            2,
            "Error: bad. One, two\n`proctor x --help` lists what there is.\n",
        ),
        (click.ClickException("bad"), 2, "Error: bad\n`proctor x --help` lists what there is.\n"),
        (KeyboardInterrupt(), 130, ""),
        (click.Abort(), 130, ""),
    ],
)
def test_each_kind_of_end_has_its_code(
    command: Any, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, message: str
) -> None:
    command(raising(error))
    assert main(["x"]) == code
    assert capsys.readouterr().err.lstrip("\n") == message


def test_what_nobody_expected_is_short_and_says_how_to_see_more(
    command: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    command(raising(KeyError("gone")))
    assert main(["x"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("Error: unexpected KeyError: 'gone' (")
    assert "test_main.py, line" in error
    assert "PROCTOR_DEBUG=1" in error
    assert "Traceback" not in error


def test_debug_shows_the_traceback(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    os.environ["PROCTOR_DEBUG"] = "1"
    command(raising(UsageError("wrong")))
    assert main(["x"]) == 2
    error = capsys.readouterr().err
    assert "Traceback" in error
    assert error.endswith("Error: wrong\n")


def test_the_number_that_a_command_returns_is_the_exit_code(command: Any) -> None:
    command(lambda: 3)
    assert main(["x"]) == 3
    command(lambda: None)
    assert main(["x"]) == 0


def test_an_env_file_of_a_parent_folder_is_read_and_overrides_nothing(command: Any, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        'A_KEY="from file"\nSET_ALREADY=file\nPROCTOR_LOG_DIR=results\nexport B=2 # note\nNOT\n'
    )
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    os.chdir(inner)
    os.environ["SET_ALREADY"] = "shell"
    seen: dict[str, str | None] = {}
    command(
        lambda: seen.update({name: os.environ.get(name) for name in ("A_KEY", "SET_ALREADY", "PROCTOR_LOG_DIR", "B")})
    )
    assert main(["x"]) == 0
    assert seen == {
        "A_KEY": "from file",
        "SET_ALREADY": "shell",
        "PROCTOR_LOG_DIR": os.path.join("..", "..", "results"),
        "B": "2",
    }


def test_a_log_folder_that_is_a_url_or_absolute_stays_as_it_is(command: Any, tmp_path: Path) -> None:
    for value in ("s3://bucket/logs", str(tmp_path / "logs")):
        os.environ.pop("PROCTOR_LOG_DIR", None)
        (tmp_path / ".env").write_text(f"PROCTOR_LOG_DIR={value}\n")
        seen: list[str] = []
        command(lambda seen=seen: seen.append(os.environ["PROCTOR_LOG_DIR"]))
        assert main(["x"]) == 0
        assert os.path.abspath(seen[0]) == value if "://" not in value else seen == [value]


def test_an_env_file_that_is_not_text_is_named(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    Path(".env").write_bytes(b"\xff\xfeA=1")
    command(lambda: None)
    assert main(["x"]) == 2
    assert ".env can't be read" in capsys.readouterr().err


def test_a_reader_that_saw_enough_causes_no_noise() -> None:
    code = """
import sys
import click
from proctor.cli import main, root

def talk():
    for _ in range(9999):
        click.echo("x" * 999)

root.get_command = lambda ctx, name: click.Command(name, callback=talk)
sys.exit(main(["x"]))
"""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with running([sys.executable, "-c", code], text=True, **pipes) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 1


def test_an_unexpected_error_and_its_traceback_hold_no_secret(
    command: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> NoReturn:
        value = "hunter2"
        raise RuntimeError(f"refused: api_key={value} and {os.environ['ACME_TOKEN']}")

    monkeypatch.setenv("ACME_TOKEN", "correct-horse")
    monkeypatch.setenv("PROCTOR_DEBUG", "1")
    command(fail)
    assert main(["eval"]) == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown and "correct-horse" not in shown and "=hunter2" not in shown
    assert "Error: unexpected RuntimeError: refused: api_key=[removed] and [ACME_TOKEN]" in shown

"""``proctor`` itself: fast, lazy, helpful about typing errors, and undisturbed by broken plugins."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import click
import pytest

from proctor import __version__, plugins
from proctor.cli import main
from proctor.contracts import CommandProvider, UsageError
from proctor.plugins import PluginInfo


@pytest.fixture(autouse=True)
def _own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with mock.patch.dict(os.environ):
        yield


def python(code: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
        timeout=60,
    )


def test_the_version_is_told_without_importing_click() -> None:
    code = (
        "import sys; from proctor.__main__ import main; main(); "
        "print('click' in sys.modules, 'pydantic' in sys.modules)"
    )
    for flag in ("--version", "-V"):
        done = python(code, flag)
        assert done.stdout.split() == ["proctor", __version__, "False", "False"]


def test_the_version_is_told_among_other_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version", "eval"]) == 0
    assert capsys.readouterr().out == f"proctor {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["completion", "bash"]])
def test_what_needs_no_engine_imports_none(arguments: list[str]) -> None:
    heavy = ("pydantic", "rich", "yaml", "anyio", "proctor.engine", "proctor.schema")
    code = f"""
import sys
from proctor.cli import main
main(sys.argv[1:])
print([name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""
    done = python(code, *arguments)
    assert done.stderr.splitlines()[-1] == "[]"


def test_help_lists_the_commands_and_their_purpose(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for name in ("eval", "list", "log", "status", "plugins", "info", "completion"):
        assert f"\n  {name} " in text
    assert max(map(len, text.splitlines())) <= 80


def test_no_command_shows_the_help_and_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    captured = capsys.readouterr()
    assert "Usage: proctor" in captured.err + captured.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["evl"], "Did you mean `proctor eval`?"),
        (["quiz.py"], "`proctor eval quiz.py --model PROVIDER/MODEL`"),
        (["quiz.py@one"], "`proctor eval quiz.py@one --model PROVIDER/MODEL`"),
        (["completion", "tcsh"], "'tcsh' is not one of"),
        (["--nonsense"], "No such option"),
    ],
)
def test_a_typing_error_gets_a_way_out(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.startswith("Error: ")
    assert "Traceback" not in error


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "_PROCTOR_COMPLETE" in capsys.readouterr().out


def test_a_shell_completes_commands_options_and_choices(capsys: pytest.CaptureFixture[str]) -> None:
    def complete(words: str) -> list[str]:
        count = len(words.split(" ")) - 1
        env = {"_PROCTOR_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(count)}
        with mock.patch.dict(os.environ, env), pytest.raises(SystemExit):
            main([])
        return [line.partition(",")[2] for line in capsys.readouterr().out.splitlines()]

    assert {"eval", "eval-retry"} <= set(complete("proctor ev"))
    assert "--max-connections" in complete("proctor eval --max-")
    assert complete("proctor eval --log-format ") == ["eval", "json"]
    assert "mock/" in complete("proctor eval --model ")
    assert "plain" in complete("proctor eval --display ")


def _offer(monkeypatch: pytest.MonkeyPatch, made: dict[str, object], summary: str = "") -> None:
    """Plugins that offer the commands ``made``: a click command, or the error that asking for it raises."""

    def get(kind: str, name: str) -> CommandProvider:
        what = made[name]
        if isinstance(what, Exception):
            raise what
        return CommandProvider(name, lambda: made[name], summary)  # type: ignore[arg-type, return-value]

    found = [PluginInfo("commands", name, f"proctor-{name}", "1.2", "m", "available") for name in made]
    monkeypatch.setattr(plugins, "inventory", lambda: found)
    monkeypatch.setattr(plugins, "get", get)


def test_commands_of_plugins_stand_in_the_help_and_are_made_when_called(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = []
    _offer(monkeypatch, {"view": click.Command("view", callback=lambda: ran.append(1)), "bad": UsageError("no")})
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert "Commands of plugins:" in text
    assert "From proctor-view 1.2." in text
    assert main(["view"]) == 0
    assert ran == [1]


def test_the_help_shows_the_summaries_of_plugins_commands_and_makes_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _offer(monkeypatch, {"view": None, "bad": UsageError("no")}, "Show logs in a browser.")
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert "view  Show logs in a browser." in text
    assert "bad   Can't be used, from proctor-bad 1.2: `proctor plugins doctor`" in text


def test_a_broken_command_breaks_only_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _offer(monkeypatch, {"bad": UsageError("proctor-bad 1.2 can't be imported: ModuleNotFoundError. Reinstall it.")})
    assert main(["--help"]) == 0
    assert main(["completion", "bash"]) == 0
    capsys.readouterr()
    assert main(["bad"]) == 2
    assert capsys.readouterr().err == "Error: proctor-bad 1.2 can't be imported: ModuleNotFoundError. Reinstall it.\n"


def test_a_plugin_can_not_take_the_name_of_a_core_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _offer(monkeypatch, {"info": click.Command("info", callback=lambda: click.echo("stolen"))})
    assert main(["info", "--json"]) == 0
    assert '"version"' in capsys.readouterr().out


def test_info_names_settings_and_shows_no_value(capsys: pytest.CaptureFixture[str]) -> None:
    os.environ["PROCTOR_EVAL_MODEL"] = "secret/model"
    Path(".env").write_text("PROCTOR_LOG_DIR=./results\n")
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert __version__ in text
    assert "PROCTOR_EVAL_MODEL" in text
    assert "secret" not in text
    assert "results" in text
    assert str(Path(".env").absolute()) in text

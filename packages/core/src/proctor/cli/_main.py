"""From arguments to an exit code: settings files, and every error as one paragraph that says what to do next."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from proctor.contracts import UsageError

__all__ = ["main"]

_INTERRUPTED = 130
_DEBUG = "PROCTOR_DEBUG"
_COMPLETE = "_PROCTOR_COMPLETE"  # set by a shell that asks for completions


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        argv: the arguments after the program's name; ``None`` = those of this process.
    """
    from proctor.cli._root import root

    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if not arguments and _COMPLETE not in os.environ:
            click.echo(root.get_help(click.Context(root, info_name="proctor")), err=True)
            return 2
        _load_env_file()
        result = root.main(arguments, prog_name="proctor", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except click.ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # since click 8.2; its message is the help
            click.echo(error.format_message(), err=True)
            return 2
        return _tell(error, *_click_message(error, arguments), exit_code=2)
    except UsageError as error:
        return _tell(error, str(error), "", exit_code=2)
    except BrokenPipeError:
        return _reader_left()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = _without_secrets(f"{type(error).__name__}: {error}".rstrip(": "))
        return _tell(
            error,
            f"unexpected {text} ({where.filename}, line {where.lineno}).",
            f"Run it again with {_DEBUG}=1 in the environment for the traceback.",
            exit_code=1,
        )


def _tell(error: Exception, message: str, hint: str, *, exit_code: int) -> int:
    if os.environ.get(_DEBUG, "") not in ("", "0"):
        click.echo(_without_secrets("".join(traceback.format_exception(error))), err=True, nl=False)
    click.echo(f"Error: {message.strip()}", err=True)
    if hint:
        click.echo(hint, err=True)
    return exit_code


def _without_secrets(text: str) -> str:
    from proctor.schema import redact_text  # it brings pydantic, which most commands can do without

    return redact_text(text)


def _click_message(error: click.ClickException, arguments: Sequence[str]) -> tuple[str, str]:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else _named_command(arguments)
    # Click lists choices one a line, with tabs.
    return " ".join(error.format_message().split()), f"`{command} --help` lists what there is."


def _named_command(arguments: Sequence[str]) -> str:
    """``proctor list tasks`` from its arguments: click's parser raises without saying which command it parsed for."""
    from proctor.cli._root import root

    command: click.Command | None = root
    path = "proctor"
    for word in arguments:
        command = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        if command is None:
            break
        path += f" {word}"
    return path


def _reader_left() -> int:
    # Whoever read the output (`| head`) has seen enough. Python would complain once more when it closes the pipe.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _load_env_file() -> None:
    """Set what the nearest ``.env`` file of this folder or its parents says and the environment does not."""
    here = Path.cwd()
    file = next((folder / ".env" for folder in (here, *here.parents) if (folder / ".env").is_file()), None)
    if file is None:
        return
    from dotenv import dotenv_values

    try:
        values = dotenv_values(file, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} can't be read: {error}. Mend it or move it away.") from error
    for name, value in values.items():
        if value is None or name in os.environ:
            continue
        if name == "PROCTOR_LOG_DIR" and value and "://" not in value:
            # A relative folder is meant as seen from the file, so that each subfolder of a project finds the same logs.
            value = os.path.relpath(file.parent / Path(value).expanduser())
        os.environ[name] = value

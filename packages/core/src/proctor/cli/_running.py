"""What the commands that run evaluations have in common."""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from proctor.cli._params import ParamType
from proctor.cli._root import EXIT_CODES
from proctor.cli._warnings import plain_warnings
from proctor.contracts import UsageError
from proctor.schema import env_options, full_option_table

__all__ = [
    "CONTEXT",
    "EPILOG",
    "at_once",
    "common_parameters",
    "for_machines",
    "merged_options",
    "own_output",
    "tasks_argument",
]

CONTEXT: Mapping[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
EPILOG = "\n".join(["\b", "Exit codes:", *(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES)])

T = TypeVar("T")

_CONNECTIONS = ("max_connections", "adaptive_connections")


class _Task(ParamType):
    name = "task"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


def tasks_argument() -> click.Parameter:
    """``TASKS``: files, folders, ``file.py@task``."""
    return click.Argument(["tasks"], nargs=-1, type=_Task())


def common_parameters() -> list[click.Parameter]:
    """``--json`` and ``--env``."""
    return [
        click.Option(["as_json", "--json"], is_flag=True, help="Print a summary as JSON; implies --display none."),
        click.Option(
            ["--env"],
            multiple=True,
            metavar="NAME=VALUE",
            expose_value=False,
            is_eager=True,
            callback=_set_env,
            help="Set an environment variable first; repeat it.",
        ),
    ]


def _set_env(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> None:
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--env: {text!r} is not NAME=VALUE.", ctx)
        os.environ[name] = value


def merged_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the command line over those of the environment; ``given`` has every key of the command."""
    try:
        options = env_options(os.environ, given)
    except ValueError as error:
        raise UsageError(str(error)) from None
    _warn_unknown(os.environ)
    _warn_empty(os.environ, given)
    said = {key: value for key, value in given.items() if value is not None}
    for one, other in (_CONNECTIONS, _CONNECTIONS[::-1]):
        if one in said and other not in said:
            options.pop(other, None)  # a fixed number and a moving one: what is said nearer replaces either
    merged = options | said
    if str(merged.get("log_dir", "")).lower().startswith("memory://") and not merged.get("dry_run"):
        click.echo(
            f"Warning: --log-dir {merged['log_dir']} is the memory of this process: the log is gone when the command "
            "ends. Name a folder to keep it.",
            err=True,
        )
    return merged


def _warn_unknown(environ: Mapping[str, str]) -> None:
    """Say once which variables look like options of evaluations and are none: a misspelt one would change nothing."""
    known = {option.variable(key) for key, option in full_option_table().items()}
    unknown = sorted(name for name, value in environ.items() if name.startswith("PROCTOR_EVAL_") and value)
    said = []
    for name in unknown:
        if name not in known:
            close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.8)
            said.append(f"{name} (did you mean {close[0]}?)" if close else name)
    if said:
        click.echo(
            f"Warning: no option has the environment variable {', '.join(said)}: it has no effect. "
            "`proctor eval --help` lists the options.",
            err=True,
        )


def _warn_empty(environ: Mapping[str, str], given: Mapping[str, Any]) -> None:
    """Say which variables were to choose samples and are empty: they say nothing, so that all would be paid for."""
    table = full_option_table()
    choosing = [
        (table[key].variable(key), table[key].flags[0])
        for key, value in given.items()
        if value is None and key in table and table[key].form in ("ids", "range")
    ]
    for name, flag in choosing:
        if environ.get(name) == "":
            click.echo(
                f"Warning: {name} is set but empty, which is as if it were not set: it chooses no samples. Give it a "
                f"value, or {flag}; unset it to be rid of this warning.",
                err=True,
            )


def for_machines(options: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Take standard output from the screen, for ``--json``.

    Args:
        options: of the run, which are changed.
        given: those of the command line: a screen that only the environment names gives way.

    Raises:
        UsageError: a screen was asked for.
    """
    if given.get("display") not in (None, "none"):
        raise UsageError(
            f"--json needs standard output for itself, but --display {given['display']} was asked for: "
            "leave one of the two out."
        )
    options["display"] = "none"


@contextlib.contextmanager
def own_output(as_json: bool) -> Iterator[None]:
    """While it runs: warnings in one line each, and nothing but the summary on a standard output that holds JSON."""
    # What task code prints goes to standard error.
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext(), plain_warnings():
        yield


def at_once(show: Callable[[T], int], result: T) -> int:
    """Show a result although the event loop does not end, whose output may still be turned aside; the exit code."""
    with contextlib.redirect_stdout(sys.__stdout__):
        return show(result)

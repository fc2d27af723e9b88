"""``proctor log``: list, show, convert, recover, push and edit logs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from proctor.cli._log_edit import COMMANDS
from proctor.cli._output import json_option, print_json
from proctor.contracts import UsageError

if TYPE_CHECKING:
    from proctor.log import EvalLogInfo, LogProgress
    from proctor.schema import EvalLog

__all__ = ["log"]

_RESOLVE = click.option(
    "--resolve-attachments",
    "resolve",
    type=click.Choice(["core", "full"]),
    help="Put long texts back in their places: all but those of raw calls, or all.",
)
_JSON = json_option()
_OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace what is there already.")
_SCORED = 15  # characters: "900/999 partial"
_STATUSES = ("started", "success", "cancelled", "error", "died")


@click.group("log")
def log() -> None:
    """List, show, convert, recover, push and edit evaluation logs."""


for _command in COMMANDS:
    log.add_command(_command)


@log.command("list", short_help="List the logs in a folder, newest first.")
@click.argument("folder", required=False, metavar="[DIR]")
@click.option(
    "--log-dir",
    default="./logs",
    show_default=True,
    envvar="PROCTOR_LOG_DIR",
    metavar="DIR",
    help="Folder of the logs, when DIR is not given.",
)
@click.option(
    "--status",
    type=click.Choice(_STATUSES),
    help="Only logs with this status; `died`: those of `started` whose run is gone.",
)
@click.option("--no-recursive", is_flag=True, help="Leave folders below it out.")
@click.option("--absolute", is_flag=True, help="Absolute paths, not those relative to this folder.")
@_JSON
def list_command(
    folder: str | None, log_dir: str, status: str | None, no_recursive: bool, absolute: bool, as_json: bool
) -> None:
    """List the logs in DIR, newest first: status, scored samples, task, model and first metric of each.

    `47/50 partial` means that samples are missing from the metric. `died 9/30` is a run that was killed when 9 of 30
    samples were recorded: `proctor eval-retry` goes on from it. Files that are no log are named as such.
    """
    from proctor.log import list_eval_logs, read_headers

    log_dir = folder or log_dir
    with _explained():
        found = list_eval_logs(log_dir, recursive=not no_recursive)
    headers = read_headers([info.name for info in found])
    rows = (_Row.of(info, header) for info, header in zip(found, headers, strict=True))
    wanted = (row for row in rows if status is None or status in row.statuses)
    if as_json:
        print_json([_facts(row, absolute) for row in wanted])
        return
    empty = True
    for row in wanted:
        click.echo(_line(row, absolute))
        empty = False
    if empty:
        which = f"No log with status {status}" if status else "No log"
        click.echo(f"{which} in {log_dir}. `proctor eval` writes there; --log-dir names another folder.")


class _Row(NamedTuple):
    """A file of the list: its header, or why it has none, and how far it is when it has no end."""

    info: EvalLogInfo
    header: EvalLog | Exception
    progress: LogProgress | None

    @classmethod
    def of(cls, info: EvalLogInfo, header: EvalLog | Exception) -> _Row:
        from proctor.log import log_progress

        if isinstance(header, Exception) or header.status != "started":
            return cls(info, header, None)
        try:
            progress = log_progress(info.name)
        except Exception as error:  # any bytes may be there now
            return cls(info, error, None)
        return cls(info, progress.header, progress if progress.header.status == "started" else None)

    @property
    def statuses(self) -> tuple[str, ...]:
        """What the log is called: that of a run which was killed is ``died``, too."""
        if isinstance(self.header, Exception):
            return ()
        died = self.progress is not None and self.progress.alive is False
        return ("died", self.header.status) if died else (self.header.status,)


@log.command("dump", short_help="Print a log as JSON.")
@click.argument("path")
@click.option("--header-only", is_flag=True, help="Leave the samples out.")
@_RESOLVE
def dump_command(path: str, header_only: bool, resolve: Literal["core", "full"] | None) -> None:
    """Print the log at PATH as JSON, whatever its format."""
    from proctor.log import read_eval_log

    with _explained():
        _print_logs(read_eval_log(path, header_only=header_only, resolve_attachments=resolve or False))


@log.command("headers", short_help="Print the headers of logs as a JSON array.")
@click.argument("paths", nargs=-1, required=True)
def headers_command(paths: Sequence[str]) -> None:
    """Print the headers of the logs at PATHS as one JSON array."""
    from proctor.log import read_eval_log

    with _explained():
        _print_logs([read_eval_log(path, header_only=True) for path in paths])


@log.command("convert", short_help="Write logs in the other format.")
@click.argument("path")
@click.option("--to", type=click.Choice(["eval", "json"]), required=True, help="Format of the new logs.")
@click.option("--output-dir", required=True, metavar="DIR", help="Folder of the new logs.")
@_OVERWRITE
@_RESOLVE
@_JSON
def convert_command(
    path: str,
    to: Literal["eval", "json"],
    output_dir: str,
    overwrite: bool,
    resolve: Literal["core", "full"] | None,
    as_json: bool,
) -> None:
    """Write the log at PATH, or all logs in that folder, in another format. The old ones stay."""
    from proctor.log import convert_eval_logs

    with _explained():
        made = convert_eval_logs(path, to, output_dir, overwrite=overwrite, resolve_attachments=resolve or False)
    _made(made, as_json)


@log.command("recover", short_help="Make a finished log of one whose run died.")
@click.argument("path")
@click.option("--output", metavar="FILE", help="The new log; <name>-recovered beside the old one if not given.")
@_OVERWRITE
@_JSON
def recover_command(path: str, output: str | None, overwrite: bool, as_json: bool) -> None:
    """Make a finished log of the one at PATH, whose run died. The old one stays as it is.

    Every sample that was acknowledged is in it. Metrics are computed anew where they are built in.
    """
    from proctor.cli._recovery import describe, recover

    with _explained():
        found = recover(path, output, overwrite)
    if as_json:
        print_json(found)
    else:
        click.echo(describe(found))


@log.command("push", short_help="Send logs that their store could not take.")
@click.argument("spills", nargs=-1, metavar="[SPILL]...")
@click.option("--all", "everything", is_flag=True, help="Send all that wait.")
@_JSON
def push_command(spills: Sequence[str], everything: bool, as_json: bool) -> None:
    """Send logs that went on here because their store was lost. Without SPILL or --all: list those that wait.

    A log is removed here once it is proven to stand in its store.
    """
    from proctor.cli._push import push

    push(spills, everything=everything, as_json=as_json)


def _made(made: Sequence[str], as_json: bool) -> None:
    if as_json:
        print_json(list(made))
    else:
        for location in made:
            click.echo(location)


@contextmanager
def _explained() -> Iterator[None]:
    """What the file system says about a path, as bad input."""
    try:
        yield
    except OSError as error:
        if error.filename is None and not isinstance(error, FileNotFoundError | PermissionError):
            raise  # it is not about the path
        raise UsageError(f"{error.filename or 'the log'}: {error.strerror or error}.") from error


def _print_logs(value: Any) -> None:
    from proctor.log import to_json

    click.echo(to_json(value, indent=2))


def _shown(location: str, absolute: bool) -> str:
    if "://" in location:
        return location
    return os.path.abspath(location) if absolute else os.path.relpath(location)


def _facts(row: _Row, absolute: bool) -> dict[str, Any]:
    info = row.info
    return {
        "name": _shown(info.name, absolute),
        "type": info.type,
        "size": info.size,
        "mtime": info.mtime,
        "task": info.task,
        "task_id": info.task_id,
        "suffix": info.suffix,
        **({"status": None} if isinstance(row.header, Exception) else _state(row.header, row.progress)),
    }


def _state(header: EvalLog, progress: LogProgress | None) -> dict[str, Any]:
    """How the evaluation ended, or how far it is and whether it goes on, and what its first metric rests on."""
    from proctor.display import unit_from_log

    unit = unit_from_log(header)
    first = next(iter(unit.results), None)
    total = unit.total if first is None or first.total is None else first.total
    return {
        "status": header.status,
        "alive": None if progress is None else progress.alive,
        "recorded": None if progress is None else progress.recorded,
        "model": header.eval.model,
        "metric": None if first is None else {"scorer": first.scorer, "name": first.name, "value": first.value},
        "scored": None if first is None else first.scored,
        "total": total if progress is None else progress.planned,
        "partial": unit.partial,
        "outcomes": dict(unit.outcomes),
        "invalidated": header.invalidated,
        "tags": header.tags,
    }


def _line(row: _Row, absolute: bool) -> str:
    info = row.info
    when = datetime.fromtimestamp(info.mtime / 1000).strftime("%Y-%m-%d %H:%M")
    what = (
        _headline(row, row.header) if not isinstance(row.header, Exception) else "not a log" if info.size else "empty"
    )
    line = f"{when}  {what}  {_shown(info.name, absolute)}"
    return line.encode("utf-8", "backslashreplace").decode()  # a lone surrogate can be written, not printed


def _headline(row: _Row, header: EvalLog) -> str:
    """Status, samples that the first metric counts, task, model, that metric: as on the screen at the end of a run."""
    from proctor.display import score_text, unit_from_log

    unit = unit_from_log(header)
    results = header.results
    score, scored = score_text(unit)
    if not score and results is not None:
        scored = f"{results.completed_samples}/{results.total_samples}"
    if row.progress is not None:
        of = "" if row.progress.planned is None else f"/{row.progress.planned}"
        scored = f"{row.progress.recorded}{of}"
    named = " ".join(filter(None, (header.eval.task, unit.label, header.eval.model, score)))
    return f"{row.statuses[0]:<9}  {scored:<{_SCORED}}  {named}"

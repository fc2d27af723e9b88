"""``proctor list tasks``: which tasks there are, found without running a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from proctor.cli._output import json_option, print_json
from proctor.cli._warnings import plain_warnings
from proctor.contracts import UsageError

if TYPE_CHECKING:
    from proctor.engine import TaskInfo

__all__ = ["list_command"]


@click.group(help="List the tasks in files and folders.", context_settings={"help_option_names": ["-h", "--help"]})
def list_command() -> None:
    """List what there is."""


@list_command.command("tasks", short_help="List the tasks in files and folders.")
@click.argument("paths", nargs=-1, type=click.Path())
@click.option(
    "-F",
    "filters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Only tasks with @task(NAME=VALUE), or with NAME~=VALUE those without; repeat it.",
)
@click.option("--absolute", is_flag=True, help="Absolute paths, not those relative to this folder.")
@json_option()
def tasks_command(paths: Sequence[str], filters: Sequence[str], absolute: bool, as_json: bool) -> None:
    """List the @task functions in PATHS (this folder when none is given), without running them.

    A task is named FILE@NAME, which is what `proctor eval` takes. A file in a folder that is no valid Python is left
    out with a warning; one that is named here is an error (exit code 2), and `proctor eval` of the folder refuses it.
    """
    from proctor.engine import list_tasks

    with plain_warnings():
        found = [task for task in list_tasks(list(paths) or ["."], absolute) if _wanted(task, filters)]
    if as_json:
        print_json([_facts(task) for task in found])
    elif not found:
        where = ", ".join(paths) or "this folder"
        click.echo(f"No task in {where}: a task is a function with the decorator @task (from proctor import task).")
    else:
        _table(found)


def _table(found: Sequence[TaskInfo]) -> None:
    names = [f"{task.file}@{task.name}" for task in found]
    width = max(map(len, names))
    for name, task in zip(names, found, strict=True):
        click.echo(f"{name:<{width}}  {task.doc}".rstrip())
        if task.params:
            params = (f"{param}={default}" if default else param for param, default in task.params.items())
            click.echo(f"    -T {', '.join(params)}")


def _facts(task: TaskInfo) -> dict[str, Any]:
    return {
        "file": task.file,
        "name": task.name,
        "attribs": dict(task.attribs),
        "doc": task.doc,
        "params": dict(task.params),
    }


def _identifier(text: str) -> str:
    name = text.strip("~= ")
    return name if name.isidentifier() else "light"


def _wanted(task: TaskInfo, filters: Sequence[str]) -> bool:
    from proctor.schema import parse_scalar

    for text in filters:
        name, equals, value = text.partition("=")
        if not equals or not name.strip("~ "):
            raise UsageError(
                f"-F {text!r} is not NAME=VALUE or NAME~=VALUE: for tasks marked @task({_identifier(text)}=True), "
                f"`-F {_identifier(text)}=true` lists them and `-F {_identifier(text)}~=true` all others."
            )
        same = task.attribs.get(name.rstrip("~").strip()) == parse_scalar(value)
        if same == name.endswith("~"):
            return False
    return True

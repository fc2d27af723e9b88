"""``proctor status``: what the running evaluations of this user do and wait for, and other limits for them."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from proctor.cli._output import json_option, json_text, print_json
from proctor.contracts import UsageError

__all__ = ["status"]

_GATES = ("connections", "samples", "tasks", "sandboxes", "execs", "subprocesses")
_PERIOD = 1.0  # seconds between two looks
_ANSWER = 3.0  # seconds that a run may take to say how it is: a thread of its own does it
_AT_ONCE = 64  # runs that are asked at once
_JSON = json_option()


class _Run(NamedTuple):
    """Where a run answers, and what it is known by."""

    socket: Path
    pid: int
    run_id: str


class _StatusGroup(click.Group):
    """A group whose first word may also name a run: click knows no optional argument before a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Bring ``1234 set ...`` into the form ``--run 1234 set ...``."""
        for place, word in enumerate(args):
            if word.startswith("-") and word != "--run":
                continue
            if word != "--run" and word not in self.commands:
                args = [*args[:place], "--run", *args[place:]]
            break
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands, the options and the runs."""
        return [*super().shell_complete(ctx, incomplete), *_complete_runs(ctx, None, incomplete)]


def _complete_runs(ctx: click.Context, param: click.Parameter | None, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(str(run.pid), help=run.run_id) for run in _safe_runs() if str(run.pid).startswith(incomplete)
    ]


def _complete_gates(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    named = {gate["name"] for gate in _asked_gates() if gate["kind"] == "named"}
    return [CompletionItem(name) for name in (*_GATES, *sorted(named)) if name.startswith(incomplete)]


def _complete_models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    names = {gate["name"] for gate in _asked_gates() if gate["kind"] == "connections"}
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


def _asked_gates() -> Iterator[dict[str, Any]]:
    for told in _all_told(_safe_runs(), all=False):
        yield from told.get("gates", ())


def _number(ctx: click.Context, param: click.Parameter, value: str) -> int | str:
    """A whole number of at least 1, or ``auto``."""
    return value if value == "auto" else int(click.IntRange(1)(value, param, ctx))


def _safe_runs() -> list[_Run]:
    try:
        return _runs(None)
    except UsageError:  # a completion has nowhere to say it
        return []


@click.group(
    "status",
    cls=_StatusGroup,
    invoke_without_command=True,
    subcommand_metavar="[PID|RUN_ID] [set GATE N]",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--run", "selector", metavar="PID|RUN_ID", shell_complete=_complete_runs, help="Only this run.")
@click.option("--watch", is_flag=True, help="Look again each second, until no evaluation is left or Ctrl-C.")
@click.option("--all", "all_samples", is_flag=True, help="All unfinished samples, not only those that wait longest.")
@_JSON
@click.pass_context
def status(ctx: click.Context, selector: str | None, watch: bool, all_samples: bool, as_json: bool) -> None:
    """Show what your evaluations on this machine do: gates, event loop, retries, and what each sample waits for.

    Without one that is running it says so (with --json: an empty list) and exits with 0. With --watch --json there is
    one list a line.
    """
    ctx.obj = selector
    if ctx.invoked_subcommand is not None:
        return
    if watch:
        _watch(selector, all_samples, as_json)
        return
    found = _all_told(_runs(selector), all=all_samples)
    click.echo(json_text(found) if as_json else _text(found))


@status.command("set", short_help="Change a limit of a running evaluation.")
@click.argument("gate", shell_complete=_complete_gates)
@click.argument("limit", metavar="N|auto", callback=_number)
@click.option("--model", metavar="MODEL", shell_complete=_complete_models, help="For connections: of this model.")
@click.option("--task", metavar="NAME", help="For samples: of this task; else of all.")
@click.option("--provider", metavar="NAME", help="For sandboxes and execs: of this provider; else of all.")
@click.option("--run", "selector", metavar="PID|RUN_ID", shell_complete=_complete_runs, help="The run to change.")
@_JSON
@click.pass_context
def set_command(
    ctx: click.Context,
    gate: str,
    limit: int | str,
    model: str | None,
    task: str | None,
    provider: str | None,
    selector: str | None,
    as_json: bool,
) -> int:
    """Let N hold GATE at once: connections, samples, tasks, sandboxes, execs (commands in sandboxes), subprocesses, or
    one that a task has named.

    It holds for the rest of the run. Connections stay at N, also where they followed the provider so far, until
    `connections auto` lets them follow it again. What already holds a gate goes on. A gate of a task that has one of
    these names is called named:NAME. Exits with 1 when the run's event loop stands still, so that nothing could be
    changed.
    """
    _check(gate, connections=model, samples=task, sandboxes=provider)
    run = _one_run(selector or ctx.obj)
    from proctor.monitor import ask

    try:
        answer = ask(run.socket, {"ask": "set", "gate": gate, "limit": limit, "of": model or task or provider})
    except (OSError, ValueError) as error:
        raise UsageError(f"the run of process {run.pid} does not answer: {error}") from error
    if as_json:
        print_json(answer)
    if answer.get("ok"):
        for change in answer["changed"] if not as_json else ():
            before = "no limit" if change["old"] is None else change["old"]
            click.echo(f"{change['name']}: {before} -> {change['new']}" + (", adaptive" if limit == "auto" else ""))
        return 0
    if not answer.get("stuck"):
        raise UsageError(str(answer.get("error")))
    click.echo(f"Error: {answer['error']}", err=True)
    return 1


def _check(gate: str, **options: str | None) -> None:
    flags = {"connections": "--model", "samples": "--task", "sandboxes": "--provider"}
    kind_of = "sandboxes" if gate == "execs" else gate
    for kind, value in options.items():
        if value is not None and kind != kind_of:
            raise UsageError(f"{flags[kind]} goes with {kind}: `proctor status set {kind} N {flags[kind]} {value}`")


def _runs(selector: str | None) -> list[_Run]:
    """The runs that are on, or the one that is meant.

    Raises:
        UsageError: there is no such run, or no way to find any here.
    """
    from proctor.monitor import has_run_sockets, run_sockets

    if not has_run_sockets():
        raise UsageError("runs can't be asked on this platform: it has no Unix sockets")
    found = []
    for socket in run_sockets():
        _, pid, run_id = socket.stem.split("-", 2)
        found.append(_Run(socket, int(pid), run_id))
    if selector is None:
        return found
    meant = [run for run in found if str(run.pid) == selector or run.run_id.startswith(selector)]
    if not meant:
        raise UsageError(f"no evaluation of yours with process or run {selector!r} is running{_names(found)}")
    return meant


def _one_run(selector: str | None) -> _Run:
    found = _runs(selector)
    if not found:
        raise UsageError("no evaluation of yours is running on this machine, so there is nothing to set")
    if len(found) > 1:
        raise UsageError(f"several evaluations are running: say which with --run{_names(found)}")
    return found[0]


def _names(runs: Sequence[_Run]) -> str:
    return "; there are " + ", ".join(f"{run.pid} ({run.run_id})" for run in runs) if runs else ""


def _all_told(runs: Sequence[_Run], *, all: bool) -> list[dict[str, Any]]:
    """What each run says, asked at once: one that is stopped costs its patience, once for all such."""
    if not runs:
        return []
    with ThreadPoolExecutor(min(len(runs), _AT_ONCE)) as threads:
        return list(threads.map(lambda run: _told(run, all=all), runs))


def _told(run: _Run, *, all: bool) -> dict[str, Any]:
    from proctor.monitor import ask

    error: object
    try:
        answer = ask(run.socket, {"ask": "status", "all": all}, _ANSWER)
        if answer.get("ok"):
            told: dict[str, Any] = answer["run"]
            return told
        error = answer.get("error")
    except (OSError, ValueError) as failure:
        error = failure
    return {"pid": run.pid, "run_id": run.run_id, "error": str(error)}


def _text(found: Sequence[dict[str, Any]]) -> str:
    from proctor.cli._status_text import run_text

    if not found:
        return "No evaluation of yours is running on this machine."
    return "\n\n".join(run_text(run) for run in found)


def _watch(selector: str | None, all_samples: bool, as_json: bool) -> None:
    show = _on_screen() if sys.stdout.isatty() and not as_json else click.echo
    runs = _runs(selector)
    while True:
        told = zip(runs, _all_told(runs, all=all_samples), strict=True)
        found = [each for run, each in told if "gates" in each or run.socket.exists()]
        show(json_text(found, indent=None) if as_json else _text(found))
        if not found:
            return
        time.sleep(_PERIOD)
        runs = [run for run in _runs(None) if selector is None or run in runs]


def _on_screen() -> Callable[[str], object]:
    """Draws a text over the one before; what does not fit is left out."""

    def draw(text: str) -> None:
        width, height = shutil.get_terminal_size()
        lines = [line[: width - 1] for line in text.split("\n")][: height - 1]
        sys.stdout.write("\x1b[H" + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")
        sys.stdout.flush()

    sys.stdout.write("\x1b[2J")
    return draw

"""``proctor sandbox``: the sandboxes that are there, whoever made them; a way in, and their removal."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from proctor.cli._output import json_option, print_json
from proctor.contracts import PrerequisiteError, UsageError

if TYPE_CHECKING:
    from proctor.contracts import RunningSandbox, SandboxDriver

__all__ = ["sandbox"]

T = TypeVar("T")

_KIND = "sandbox_providers"
_PATIENCE = 60.0  # seconds that a provider has to say what there is
_REMOVAL = 600.0  # seconds that it has to take things away
_JSON = json_option()
_OLD = ((86400, "d"), (3600, "h"), (60, "min"))


@dataclass(slots=True)
class _Found:
    """What one provider has, or why it can't be asked."""

    provider: str
    make: Callable[[], SandboxDriver] | None = None
    """Makes a driver: each loop has its own."""
    backend: str = "asyncio"
    there: list[RunningSandbox] = field(default_factory=list)
    alive: dict[str, bool | None] = field(default_factory=dict)
    error: str = ""
    absent: bool = False
    """Whether what it needs is not there at all: an engine, a cluster. Of those that nobody named, that is no fault."""


@click.group("sandbox", context_settings={"help_option_names": ["-h", "--help"]})
def sandbox() -> None:
    """List the sandboxes that are there, get into one, and take away what dead evaluations left."""


@sandbox.command("list", short_help="List the sandboxes of all evaluations.")
@click.argument("provider", required=False)
@_JSON
def list_command(provider: str | None, as_json: bool) -> int:
    """List the sandboxes that are there, of PROVIDER or of all that are installed, and whose they are.

    Exits with 1 when an engine or a cluster that is there could not be asked.
    """
    found = _ask([provider] if provider else _providers())
    if as_json:
        rows = [_row(one, each) for one in found for each in one.there]
        print_json({"sandboxes": rows, "errors": _errors(found), "absent": _absent(found)})
    else:
        click.echo(_table(found))
        _tell_errors(found)
    return _exit_code(found)


@sandbox.command("cleanup", short_help="Take away what dead evaluations left, or one sandbox.")
@click.argument("words", nargs=-1, metavar="[PROVIDER] [ID|RUN_ID]")
@click.option(
    "--all", "everything", is_flag=True, help="Also what belongs to evaluations that are running or elsewhere."
)
@_JSON
def cleanup_command(words: tuple[str, ...], everything: bool, as_json: bool) -> int:
    """Take away the sandboxes of evaluations that have ended: of PROVIDER or of all, all of them or one or a run's.

    What belongs to an evaluation that goes on stays, and what may do so on another machine does, too, unless it is
    named; --all takes these as well. Exits with 1 when something could not be taken away.
    """
    names, target = _meant(words)
    found = _ask(names)
    chosen = _chosen(found, target, everything)
    removed: list[dict[str, str]] = []
    for one in found:
        if one.error:
            continue
        try:
            names = _removed(one, chosen[one.provider], reap=target is None)
            removed += [{"provider": one.provider, "name": name} for name in names]
        except Exception as error:
            one.error = f"{type(error).__name__}: {error}"
    stays = sum(len(one.there) - len(chosen[one.provider]) for one in found) if target is None else 0
    if as_json:
        print_json({"removed": removed, "stay": stays, "errors": _errors(found), "absent": _absent(found)})
    else:
        lines = [f"Removed {each['name']} ({each['provider']})." for each in removed] or ["Nothing was removed."]
        if stays:
            lines.append(f"{stays} stay: their evaluations go on, or may do so elsewhere (`proctor sandbox list`).")
        click.echo("\n".join(lines))
        _tell_errors(found)
    return _exit_code(found)


@sandbox.command("shell", short_help="Open a shell in a sandbox.")
@click.argument("id")
def shell_command(id: str) -> int:
    """Open a shell in the sandbox ID (its beginning is enough); the exit code is the shell's."""
    found = _ask(_providers())
    [(one, each)] = _matches(found, id, runs=False)
    if each.connection is None:
        raise UsageError(f"nobody can get into {each.id} ({one.provider}): it is {each.state}")
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for what runs inside
    try:
        return subprocess.call(["sh", "-c", each.connection.command], preexec_fn=_heed_ctrl_c)
    finally:
        signal.signal(signal.SIGINT, before)


def _heed_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


# Whom to ask


def _providers() -> list[str]:
    from proctor import plugins

    usable = [info for info in plugins.inventory() if info.kind == _KIND and info.state in ("available", "loaded")]
    return sorted(info.name for info in usable)


def _meant(words: Sequence[str]) -> tuple[list[str], str | None]:
    """The providers and the sandbox or run that the words of a command name."""
    known = _providers()
    match list(words):
        case []:
            return known, None
        case [word]:
            return ([word], None) if word in known else (known, word)
        case [provider, target]:
            return [provider], target
    raise UsageError(f"too many words: `proctor sandbox cleanup [PROVIDER] [ID|RUN_ID]`, not {' '.join(words)}")


def _ask(names: Sequence[str]) -> list[_Found]:
    """What the providers have.

    Raises:
        UsageError: the only one that is asked can't be.
    """
    found = [_asked(name) for name in names]
    if len(found) == 1 and found[0].error:
        raise UsageError(f"the sandboxes of {found[0].provider} can't be listed: {found[0].error}")
    return found


def _asked(name: str) -> _Found:
    from proctor import plugins

    one = _Found(name)
    try:
        record = plugins.get("sandbox_providers", name)
        one.make, one.backend = partial(plugins.make, _KIND, record), record.backends[0]
        with plugins.complete(_KIND, name), plugins.contained(_KIND, name):
            one.there = _within(one, one.make().sandboxes, _PATIENCE)
        one.alive = {each.id: each.owner.alive() if each.owner is not None else None for each in one.there}
    except Exception as error:
        one.error, one.absent = str(error) or type(error).__name__, isinstance(error, PrerequisiteError)
    return one


def _within(one: _Found, work: Callable[[], Awaitable[T]], seconds: float) -> T:
    import anyio

    async def run() -> T:
        with anyio.fail_after(seconds):
            return await work()

    try:
        return anyio.run(run, backend=one.backend)
    except TimeoutError:
        raise TimeoutError(f"no answer within {seconds:g} s") from None


# What is meant


def _chosen(found: Sequence[_Found], target: str | None, everything: bool) -> dict[str, list[str]]:
    """The ids to remove, by provider.

    Raises:
        UsageError: there is nothing of that name, or it belongs to an evaluation that goes on.
    """
    chosen: dict[str, list[str]] = {one.provider: [] for one in found}
    if target is None:
        for one in found:
            chosen[one.provider] = [each.id for each in one.there if everything or one.alive[each.id] is False]
        return chosen
    for one, each in _matches(found, target, runs=True):
        if one.alive[each.id] and not everything:
            assert each.owner is not None
            raise UsageError(
                f"{each.id} ({one.provider}) belongs to the evaluation of process {each.owner.pid}, which goes on: "
                f"--all takes it away all the same"
            )
        chosen[one.provider].append(each.id)
    return chosen


def _matches(found: Sequence[_Found], target: str, *, runs: bool) -> list[tuple[_Found, RunningSandbox]]:
    """The sandbox with that id (or the only one that begins so), or those of the run of that id.

    Raises:
        UsageError: there is none, or there are several.
    """
    there = [(one, each) for one in found for each in one.there]
    if runs and (of_run := [pair for pair in there if pair[1].owner is not None and pair[1].owner.run_id == target]):
        return of_run
    same = [pair for pair in there if pair[1].id == target]
    meant = same or [pair for pair in there if pair[1].id.startswith(target)]
    if len(meant) == 1:
        return meant
    if meant:
        names = ", ".join(f"{each.id} ({one.provider})" for one, each in meant[:5])
        raise UsageError(f"several sandboxes are called {target!r}, or begin so: {names}")
    what = "sandbox or run" if runs else "sandbox"
    reasons = "".join(f"; {name} could not be asked: {error}" for name, error in _errors(found).items())
    raise UsageError(f"there is no {what} {target!r}: `proctor sandbox list` shows what there is{reasons}")


def _removed(one: _Found, ids: Sequence[str], *, reap: bool) -> list[str]:
    assert one.make is not None
    driver = one.make()

    async def remove() -> list[str]:
        removed = await driver.remove(ids) if ids else []
        return removed + (await driver.reap(None) if reap else [])

    return _within(one, remove, _REMOVAL)


# What is said


def _errors(found: Sequence[_Found]) -> dict[str, str]:
    return {one.provider: one.error for one in found if one.error}


def _absent(found: Sequence[_Found]) -> list[str]:
    """Those that could not be asked since nothing is set up for them here, which is no fault."""
    return [one.provider for one in found if one.absent]


def _exit_code(found: Sequence[_Found]) -> int:
    return 1 if any(one.error and not one.absent for one in found) else 0


def _tell_errors(found: Sequence[_Found]) -> None:
    for provider, error in _errors(found).items():
        click.echo(f"{provider} could not be asked: {error}", err=True)


def _row(one: _Found, each: RunningSandbox) -> dict[str, Any]:
    return {
        "provider": one.provider,
        "id": each.id,
        "state": each.state,
        "created": each.created.isoformat() if each.created is not None else None,
        "owner": asdict(each.owner) if each.owner is not None else None,
        "alive": one.alive[each.id],
        "enter": each.connection.command if each.connection is not None else None,
    }


def _table(found: Sequence[_Found]) -> str:
    rows = [("PROVIDER", "ID", "STATE", "AGE", "OWNER", "SAMPLE", "RUN"), *_lines(found)]
    if len(rows) == 1:
        asked = ", ".join(one.provider for one in found if not one.error)
        return f"There is no sandbox of {asked or 'those that answer'}." if _errors(found) else "There is no sandbox."
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _lines(found: Sequence[_Found]) -> Iterator[tuple[str, ...]]:
    states: Mapping[bool | None, str] = {True: "runs", False: "ended", None: "on another machine"}
    for one in found:
        for each in one.there:
            whose, sample, run = "unknown", "", ""
            if each.owner is not None:
                keep = ", kept" if each.owner.keep else ""
                whose = f"{each.owner.pid} {states[one.alive[each.id]]}{keep}"
                sample = f"{each.owner.sample} ({each.owner.epoch})" if each.owner.sample else each.owner.task
                run = each.owner.run_id
            yield one.provider, each.id, each.state, _age(each.created), whose, sample, run


def _age(created: datetime | None) -> str:
    if created is None:
        return ""
    seconds = max(0.0, (datetime.now(UTC) - created).total_seconds())
    return next((f"{seconds / size:.0f} {unit}" for size, unit in _OLD if seconds >= size), f"{seconds:.0f} s")

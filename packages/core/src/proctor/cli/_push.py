"""``proctor log push``: logs that wait on this machine for the store where they belong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from proctor.cli._output import print_json
from proctor.contracts import UsageError
from proctor.log import Spill, list_spills, push_spill, read_spill, spill_folder

__all__ = ["push"]


def push(paths: Sequence[str], *, everything: bool, as_json: bool) -> None:
    """Send the logs at ``paths``, or all; without either, list them.

    Raises:
        UsageError: there is no such spill, or one of them could not be sent; the others are.
    """
    if paths and everything:
        raise UsageError("name logs, or pass --all: not both.")
    spills = [read_spill(path) for path in paths] if paths else list_spills()
    if not paths and not everything:
        _list(spills, as_json)
        return
    done = [_push(spill, as_json) for spill in spills]
    if as_json:
        print_json(done)
    elif not spills:
        click.echo(f"No log waits to be sent in {spill_folder()}.")
    failed = [one for one in done if one["error"]]
    if failed:
        raise UsageError(
            f"{len(failed)} of {len(done)} could not be sent and stay: "
            + "; ".join(f"{one['path']}: {one['error']}" for one in failed)
        )


def _list(spills: Sequence[Spill], as_json: bool) -> None:
    if as_json:
        print_json([asdict(spill) for spill in spills])
        return
    if not spills:
        click.echo(f"No log waits to be sent in {spill_folder()}.")
    for spill in spills:
        click.echo(f"{spill.path}  ->  {spill.location}  ({spill.reason})")
    if spills:
        click.echo("`proctor log push --all` sends them.")


def _push(spill: Spill, quiet: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"path": spill.path, "location": spill.location, "sent": False, "error": None}
    try:
        done = push_spill(spill)
    except (OSError, UsageError) as error:
        row["error"] = getattr(error, "strerror", None) or str(error)
        return row
    row["sent"] = done.sent
    if not quiet:
        how = "sent" if done.sent else "it stood there already"
        click.echo(f"{done.location}  ({done.size:,} bytes, {how})")
    return row

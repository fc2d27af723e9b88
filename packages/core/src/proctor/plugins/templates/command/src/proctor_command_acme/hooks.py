"""What this package offers. Importing it is cheap: ``proctor --help`` shows the summary and imports no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.contracts import CommandProvider
from proctor.hookspecs import hookimpl

if TYPE_CHECKING:
    import click


def _make() -> click.Command:
    from proctor_command_acme._command import command

    return command


@hookimpl
def proctor_commands() -> Sequence[CommandProvider]:
    """One command."""
    return [CommandProvider(name="acme", factory=_make, summary="Count the logs of each task.")]

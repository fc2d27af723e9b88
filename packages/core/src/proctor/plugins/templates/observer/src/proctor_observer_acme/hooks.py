"""What this package offers. Importing it is cheap: the observer comes with the run that asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.contracts import ObserverProvider
from proctor.hookspecs import hookimpl

if TYPE_CHECKING:
    from proctor.contracts import Observer


@dataclass(frozen=True)
class AcmeArgs:
    """What ``--observer acme:key=value`` accepts.

    Attributes:
        file: where the events are written.
    """

    file: str = "acme.jsonl"


def _make(args: AcmeArgs) -> Observer:
    from proctor_observer_acme._observer import AcmeObserver

    return AcmeObserver(args.file)


@hookimpl
def proctor_observers() -> Sequence[ObserverProvider]:
    """One observer."""
    return [ObserverProvider(name="acme", factory=_make, args=AcmeArgs, summary="a line of JSON for each event")]

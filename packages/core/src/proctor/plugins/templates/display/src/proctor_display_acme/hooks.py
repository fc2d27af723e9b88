"""What this package offers. Importing it is cheap: the screen comes with the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.contracts import DisplayProvider
from proctor.hookspecs import hookimpl

if TYPE_CHECKING:
    from proctor.contracts import Display


@dataclass(frozen=True)
class AcmeArgs:
    """What ``--display acme:key=value`` accepts.

    Attributes:
        every: seconds between two lines about a run that goes on.
    """

    every: float = 5.0


def _make(args: AcmeArgs) -> Display:
    from proctor_display_acme._display import AcmeDisplay

    return AcmeDisplay(every=args.every)


@hookimpl
def proctor_displays() -> Sequence[DisplayProvider]:
    """One screen."""
    return [DisplayProvider(name="acme", factory=_make, args=AcmeArgs, summary="a line every few seconds")]

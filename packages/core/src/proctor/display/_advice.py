"""What to type next when an evaluation did not come to its end."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from proctor.schema import EvalLog

__all__ = ["next_command", "stopped_text"]

_MOST = 3  # logs that are named
_SAME_SET = "the same `proctor eval-set` again"


def next_command(log: EvalLog, outcomes: Mapping[str, int]) -> str:
    """What goes on from ``log``; empty when it is complete, or nothing can.

    Args:
        log: its header is enough.
        outcomes: how many of its samples ended in which way.
    """
    spec = log.eval
    if log.status not in ("error", "cancelled") or not log.location or log.location.startswith("memory:"):
        return ""
    if spec.eval_set_id is not None:
        return f"{_SAME_SET} goes on from here"
    if spec.config.log_samples is False or not (spec.task_file or "/" in (spec.task_registry_name or spec.task)):
        return ""  # a resume would refuse it
    command = f"proctor eval-retry {shlex.quote(log.location)}"
    failed = any(kind.partition(":")[0] == "error" and count for kind, count in outcomes.items())
    # Only where a sample's error is what ended the unit; a resume meets that sample first, and would end there again.
    return f"{command} --no-fail-on-error" if log.status == "error" and log.error is not None and failed else command


def stopped_text(locations: Sequence[str], *, in_set: bool = False) -> str:
    """The last line of a run that a second signal ends at once.

    Args:
        locations: of the logs that were not finished.
        in_set: the run was of an eval set, which is gone on with by its own command.
    """
    if not locations:
        return "Stopped at once. No log was open."
    named = " ".join(map(shlex.quote, locations[:_MOST]))
    more = f" (and {len(locations) - _MOST} more)" if len(locations) > _MOST else ""
    again = _SAME_SET if in_set else f"`proctor eval-retry {named}`"
    return (
        f"Stopped at once. What was recorded is in {named}{more}: {again} goes on from there, "
        f"`proctor log recover {shlex.quote(locations[0])}` makes a finished log of it."
    )

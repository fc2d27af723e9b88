"""How far a log is that has no end yet, and whether somebody still writes it."""

from __future__ import annotations

from dataclasses import dataclass

from proctor.log._location import store_for
from proctor.log._open import open_log
from proctor.log._outcomes import planned_samples
from proctor.schema import EvalLog, own_metadata

__all__ = ["LogProgress", "log_progress"]


@dataclass(frozen=True, slots=True)
class LogProgress:
    """A log with the status ``started``.

    Args:
        header: as it is now; another status says that the log has come to its end meanwhile.
        recorded: samples that it has.
        planned: samples, times epochs, that it is to have; ``None`` when that is not known.
        alive: whether its run goes on (or another command holds it); ``None`` in logs of other programs.
    """

    header: EvalLog
    recorded: int
    planned: int | None
    alive: bool | None


def log_progress(location: str) -> LogProgress:
    """How far the log at ``location`` is.

    Raises:
        FileNotFoundError: there is nothing.
        BadLogError: what is there is not a log.
    """
    store, name = store_for(location)
    alive = store.live(name)  # first: a run that ends while this looks has a header with its end then
    file = open_log(location)
    header = file.header(reductions=False)
    mine = bool(own_metadata(header.eval))
    return LogProgress(header, len(file.keys()), planned_samples(header.eval) or None, alive if mine else None)

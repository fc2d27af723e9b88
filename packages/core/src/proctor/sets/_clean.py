"""Deleting the logs of earlier attempts, each once its samples are proven to stand in the newest log."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TypeAlias

from proctor.engine import logged_unit
from proctor.log import LogIndex, index_eval_log, store_for
from proctor.schema import EvalLog
from proctor.sets._folder import scan_folder

__all__ = ["delete_superseded"]

_Place: TypeAlias = tuple[str, int]


def delete_superseded(log_dir: str, newest: Sequence[EvalLog]) -> list[str]:
    """Delete the logs in ``log_dir`` whose samples are all in the newest log of their unit; blocks.

    A log that somebody writes or holds, one with a sample that the newest lacks, or has from another attempt, and one
    without samples to compare is left.

    Args:
        log_dir: the folder of the set.
        newest: a log of each unit; those that did not end in success prove nothing.

    Returns:
        The locations of what was deleted.
    """
    deleted = []
    folder = scan_folder(log_dir)
    for header in newest:
        unit = logged_unit(header)
        earlier = [log for log in folder.logs if logged_unit(log) == unit and log.location != header.location]
        if header.status != "success" or not earlier:
            continue
        kept = index_eval_log(header.location)
        uuids = _uuids(kept)
        for log in earlier:
            with suppress(Exception):  # it is in use, gone or damaged: nothing is proven then
                index = index_eval_log(log.location, hold=True)
                try:
                    if len(index) and _stands_in(index, kept, uuids):
                        store, name = store_for(log.location)
                        store.delete(name)
                        deleted.append(log.location)
                finally:
                    index.release()
    return deleted


def _stands_in(index: LogIndex, newest: LogIndex, uuids: dict[_Place, str]) -> bool:
    for row in index.rows():
        id, epoch = row["id"], row["epoch"]
        if newest.state(id, epoch) is None:
            return False
        # What failed was run again; what is done must be there as it is, not run a second time.
        if index.state(id, epoch) == "done" and uuids.get((str(id), epoch)) != row.get("uuid"):
            return False
    return True


def _uuids(index: LogIndex) -> dict[_Place, str]:
    return {(str(row["id"]), row["epoch"]): row.get("uuid", "") for row in index.rows()}

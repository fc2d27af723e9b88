"""Deleting the logs of earlier attempts, each once its samples are proven to stand in the newest log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from proctor.engine import logged_unit
from proctor.log import LogIndex, index_eval_log, store_for
from proctor.schema import EvalLog
from proctor.sets._folder import scan_folder

__all__ = ["delete_superseded"]

_Place: TypeAlias = tuple[str, int]
_Sample: TypeAlias = tuple[Any, Any]
"""Which attempt at it it is, and its scores, which somebody may have changed."""


def delete_superseded(log_dir: str, newest: Sequence[EvalLog]) -> list[str]:
    """Delete the logs in ``log_dir`` whose samples are all in the newest log of their unit; blocks.

    A log is left that somebody writes or holds, that has a sample which the newest lacks, or has from another attempt
    or with other scores, that has no samples to compare, or that is a copy of another one: somebody made it.

    Args:
        log_dir: the folder of the set.
        newest: a log of each unit; those that did not end in success prove nothing.

    Returns:
        The locations of what was deleted.
    """
    deleted = []
    folder = scan_folder(log_dir)
    copies = Counter(log.eval.eval_id for log in folder.logs)  # each attempt has an id of its own
    for header in newest:
        unit = logged_unit(header)
        earlier = [log for log in folder.logs if logged_unit(log) == unit and copies[log.eval.eval_id] == 1]
        earlier = [log for log in earlier if log.location != header.location]
        if header.status != "success" or not earlier:
            continue
        kept = index_eval_log(header.location)
        samples = _samples(kept)
        for log in earlier:
            with suppress(Exception):  # it is in use, gone or damaged: nothing is proven then
                index = index_eval_log(log.location, hold=True)
                try:
                    if len(index) and _stands_in(index, kept, samples):
                        store, name = store_for(log.location)
                        store.delete(name)
                        deleted.append(log.location)
                finally:
                    index.release()
    return deleted


def _stands_in(index: LogIndex, newest: LogIndex, samples: Mapping[_Place, _Sample]) -> bool:
    for row in index.rows():
        id, epoch = row["id"], row["epoch"]
        if newest.state(id, epoch) is None:
            return False
        # What failed was run again; what is done must be there as it is, not run a second time.
        if index.state(id, epoch) == "done" and samples.get((str(id), epoch)) != _sample(row):
            return False
    return True


def _samples(index: LogIndex) -> dict[_Place, _Sample]:
    return {(str(row["id"]), row["epoch"]): _sample(row) for row in index.rows()}


def _sample(row: Mapping[str, Any]) -> _Sample:
    return row.get("uuid"), row.get("scores")

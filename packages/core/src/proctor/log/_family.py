"""The logs of all attempts at one evaluation: they share a task id, and a resume names those that it goes on from."""

from __future__ import annotations

from proctor.log._list import list_eval_logs
from proctor.log._location import join, store_for
from proctor.schema import EvalLog, own_metadata

__all__ = ["attempts_of"]


def attempts_of(header: EvalLog) -> tuple[list[str], list[str]]:
    """Where the other attempts at the evaluation of a log are: those that are there, and those that are missing.

    They are looked for in the log's folder by the task id in their names, and where the log itself says that they were.
    """
    folder = header.location.rpartition("/")[0]
    task_id = header.eval.task_id
    named = [str(place) for place in own_metadata(header.eval).get("resumes") or ()]
    found = {
        info.name: None
        for info in list_eval_logs(folder or ".", recursive=False)
        if task_id and info.task_id == task_id and not _same(info.name, header.location)
    }
    missing = []
    for place in named:
        location = place if "/" in place or not folder else join(folder, place)
        if any(_same(location, known) for known in found):
            continue
        if _there(location):
            found[location] = None
        else:
            missing.append(location)
    return list(found), missing


def _same(one: str, other: str) -> bool:
    return one.removeprefix("./") == other.removeprefix("./")


def _there(location: str) -> bool:
    store, name = store_for(location)
    try:
        store.stat(name)
    except FileNotFoundError:
        return False
    return True

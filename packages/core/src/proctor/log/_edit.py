"""Changing finished logs. Each change is a step of its own: of two editors, none undoes what the other did."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from proctor.contracts import LogBusyError, LogLease, UsageError
from proctor.log._eval_file import EvalFile
from proctor.log._hold import hold_log
from proctor.log._json import decode
from proctor.log._json_file import JsonFile
from proctor.log._list import EvalLogInfo
from proctor.log._location import check_free, store_for
from proctor.log._log_file import LogFile, apply_updates
from proctor.log._open import open_log
from proctor.log._rewrite import edited_log
from proctor.log._spool import ReductionSpool, SampleSpool
from proctor.schema import EvalLog, EvalSample, LogUpdate, MetadataEdit, Provenance, TagsEdit

__all__ = [
    "LogEdit",
    "change_eval_log",
    "edit_eval_log",
    "finished_header",
    "hold_eval_log",
    "kept_reductions",
    "new_provenance",
    "scored_samples",
    "write_edited_log",
]

_TRIES = 20  # of a change that others are faster than
_HOLDS = 20  # tries to hold a log; a file store takes 0.2 s for each
_PAUSE = 0.3  # seconds between them
# What metrics and outcomes are made of; all else of a sample (messages, events) is most of it and is not looked at.
_SCORED = (
    "id", "epoch", "target", "choices", "scores", "metadata", "error", "error_retries", "invalidation", "limit", "uuid",
)  # fmt: skip

LogPath = str | os.PathLike[str] | EvalLogInfo


@dataclass
class LogEdit:
    """What becomes of a log: a new header, and what else is not as it was.

    Args:
        log: the header.
        samples: samples in the place of those of the same id and epoch.
        reductions: all reduced scores.
    """

    log: EvalLog
    samples: SampleSpool | None = None
    reductions: ReductionSpool | None = None

    def close(self) -> None:
        """Remove temporary files."""
        for spool in (self.samples, self.reductions):
            if spool is not None:
                spool.close()


def change_eval_log(
    path: LogPath,
    change: Callable[[LogFile], LogEdit],
    *,
    sleep: Callable[[float], object] = time.sleep,
) -> EvalLog:
    """Change the log at ``path``: read, ``change``, and write it where nobody else has changed it meanwhile.

    The log is held while this goes on. Where a store can't hold logs and somebody else was faster, the log is read
    again and changed again, so that both changes are in it.

    Args:
        path: the log.
        change: makes the edit from the log as it is now; called again when somebody else was faster.
        sleep: waits for somebody else's edit to end, 10 s or so at most.

    Returns:
        The new header.

    Raises:
        LogBusyError: its run is alive, or somebody else does not let go of it.
        UsageError: there is no log, its run died, or others change it all the time.
    """
    location = path.name if isinstance(path, EvalLogInfo) else os.fspath(path)
    for _ in range(_TRIES):
        with ExitStack() as stack:
            stack.enter_context(hold_eval_log(location, sleep=sleep))
            file = open_log(location)
            finished_header(file)
            edit = change(file)
            stack.callback(edit.close)
            try:
                return write_edited_log(file, edit)
            except FileExistsError:
                continue
    raise UsageError(f"{location} was changed by somebody else each time that it was read. Try again later.")


def finished_header(file: LogFile) -> EvalLog:
    """The header of a log that can be changed.

    Raises:
        UsageError: its run has not finished it.
    """
    header = file.header(reductions=False)
    if header.status == "started":
        raise UsageError(
            f"{file.location} was not finished: its run is alive or has died. `proctor log recover {file.location}` "
            "makes a finished log of what a dead one left."
        )
    return header


def write_edited_log(file: LogFile, edit: LogEdit, output: str | None = None, *, overwrite: bool = False) -> EvalLog:
    """Write an edited log in the place of ``file``, as long as that is what it was when it was read; or elsewhere.

    Args:
        file: the log that was edited.
        edit: what became of it.
        output: another place.
        overwrite: replace a log that is at ``output`` already.

    Returns:
        The header, with its location and etag.

    Raises:
        FileExistsError: somebody else has changed the log.
        UsageError: there is a log at ``output``.
    """
    target = output or file.location
    store, name = store_for(target)
    if output is not None and not overwrite:
        check_free(output)
    chunks = edited_log(file, edit.log, edit.samples, edit.reductions)
    stat = store.replace(name, chunks, if_match=edit.log.etag if output is None else None)
    edit.log.etag, edit.log.location = stat.etag, target
    return edit.log


def hold_eval_log(location: str, *, sleep: Callable[[float], object] = time.sleep) -> LogLease:
    """Keep others from editing or resuming a log; a short edit of somebody else is waited for, a run is not.

    Args:
        location: the log.
        sleep: waits between two looks, 10 s or so in all.

    Raises:
        LogBusyError: its run is alive, or somebody else does not let go of it.
        UsageError: there is no log.
    """
    store, name = store_for(location)
    for left in reversed(range(_HOLDS)):
        try:
            return hold_log(store, name, location)
        except LogBusyError:
            if not left or _under_way(location):
                raise
            sleep(_PAUSE)
    raise AssertionError("not reached")


def _under_way(location: str) -> bool:
    try:
        return open_log(location).header(reductions=False).status == "started"
    except FileNotFoundError:
        return False


def new_provenance(author: str | None = None, reason: str | None = None) -> Provenance:
    """Who changes something now; ``author`` is the user of this process unless given."""
    if author is None:
        try:
            author = getpass.getuser()
        except (KeyError, OSError):  # a container without a name for its user
            author = "unknown"
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return Provenance(author=author, timestamp=stamp, reason=reason)


def edit_eval_log(
    path: LogPath, edits: Sequence[TagsEdit | MetadataEdit], provenance: Provenance | None = None
) -> EvalLog:
    """Change tags and metadata of a finished log; what the run itself said stays, and each change says whose it is.

    Its samples are copied as they are.

    Args:
        path: the log.
        edits: what to add, set and remove.
        provenance: who, when and why; see ``new_provenance``.

    Returns:
        The new header; ``tags`` and ``metadata`` have all edits in them.

    Raises:
        UsageError: a tag or key that should be removed is not there, a key is Proctor's own, or the log can't be
            changed.
    """
    if any(
        "proctor" in (*edit.metadata_set, *edit.metadata_remove) for edit in edits if isinstance(edit, MetadataEdit)
    ):
        # It says which work the log is of: resumes, sets and scores stand on it.
        raise UsageError("the metadata key 'proctor' is what Proctor itself says of the run: take another name.")
    update = LogUpdate(edits=[edit.to_dict() for edit in edits], provenance=provenance or new_provenance())

    def change(file: LogFile) -> LogEdit:
        log = file.header(reductions=False)
        for edit in edits:
            there: Iterable[str] = log.tags if isinstance(edit, TagsEdit) else log.metadata
            gone = edit.tags_remove if isinstance(edit, TagsEdit) else edit.metadata_remove
            if unknown := [one for one in gone if one not in there]:
                what = "tag" if isinstance(edit, TagsEdit) else "metadata key"
                raise UsageError(
                    f"{file.location} has no {what} {', '.join(map(repr, unknown))}; it has: "
                    f"{', '.join(there) or 'none'}."
                )
        log.log_updates = [*(log.log_updates or ()), update]
        apply_updates(log)
        return LogEdit(log)

    return change_eval_log(path, change)


def scored_samples(file: LogFile, edited: SampleSpool | None = None) -> Iterator[EvalSample]:
    """The samples of a log without their messages and events, one by one; those in ``edited`` as they will be."""
    if isinstance(file, JsonFile):
        for sample in file.samples():
            changed = edited and edited.content(sample.id, sample.epoch)
            yield _slim(decode(changed)) if changed else sample
        return
    assert isinstance(file, EvalFile)
    for id, epoch, entry in file.members():
        changed = edited and edited.content(id, epoch)
        yield _slim(decode(changed or file.zip.content(entry)))


def _slim(tree: dict[str, Any]) -> EvalSample:
    kept = {name: tree[name] for name in _SCORED if name in tree}
    for retry in kept.get("error_retries") or ():
        retry.pop("events", None)
    stops = [
        {"message": {"role": "assistant", "content": ""}, "stop_reason": choice.get("stop_reason", "unknown")}
        for choice in (tree.get("output") or {}).get("choices") or ()
    ]
    return EvalSample.model_validate({"input": "", "target": "", **kept, "output": {"choices": stops}})


def kept_reductions(file: LogFile, scorers: Collection[str] | None = None) -> ReductionSpool:
    """The reduced scores that a log has, those of some scorers or all."""
    found = file.whole().reductions if isinstance(file, JsonFile) else file.header().reductions
    spool = ReductionSpool()
    for one in found or ():
        if scorers is not None and one.scorer not in scorers:
            continue
        for score in one.samples:
            spool.add(one.scorer, one.reducer, score)
    return spool

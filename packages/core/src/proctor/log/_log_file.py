"""One log, opened for reading: what every format offers, and what is computed on reading."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from hashlib import blake2b

from pydantic import ValidationError

from proctor.contracts import LogStore, Stat, UsageError
from proctor.log._expand import Resolve
from proctor.log._zip_read import BadLogError
from proctor.schema import EvalLog, EvalSample, EvalSampleSummary

__all__ = ["LogFile", "SampleNotFoundError", "apply_updates", "check_version", "derived", "misfit"]


class SampleNotFoundError(UsageError, IndexError):
    """A log has no such sample."""


class LogFile(ABC):
    """A log that can be read in parts."""

    def __init__(self, location: str, store: LogStore, name: str, stat: Stat) -> None:
        self.location = location
        self._store, self._name, self._stat = store, name, stat

    @property
    def etag(self) -> str:
        """That of the content that is being read."""
        return self._stat.etag

    @abstractmethod
    def header(self, reductions: bool = True) -> EvalLog:
        """The log without its samples, and without reduced scores when they are not wanted."""

    @abstractmethod
    def samples(self, resolve: Resolve = False) -> Iterable[EvalSample]:
        """All samples, by epoch and id."""

    @abstractmethod
    def sample(self, id: int | str, epoch: int, resolve: Resolve = False) -> EvalSample:
        """One sample.

        Raises:
            SampleNotFoundError: there is none of that id and epoch.
        """

    @abstractmethod
    def keys(self) -> list[tuple[str, int]]:
        """The id (as text) and epoch of every sample."""

    @abstractmethod
    def summaries(self) -> list[EvalSampleSummary]:
        """The summaries of the samples, in the order in which they were completed."""

    def page(self, offset: int, limit: int) -> list[EvalSampleSummary]:
        """``limit`` summaries from the ``offset``-th on."""
        return self.summaries()[offset : offset + limit]

    def _missing(self, id: int | str, epoch: int) -> SampleNotFoundError:
        return SampleNotFoundError(
            f"{self.location} has no sample {id!r} of epoch {epoch}; `proctor log dump` shows those it has."
        )


def misfit(error: ValidationError) -> str:
    """Where data do not fit, and why: the first place, since what follows is often its consequence."""
    first = error.errors(include_url=False, include_context=False)[0]
    return f"at {'.'.join(map(str, first['loc']))!r}: {first['msg']}"


def check_version(version: object, location: str) -> None:
    """Refuse a format that is newer than this code.

    Raises:
        BadLogError: it is.
    """
    if isinstance(version, int) and version > 2:
        raise BadLogError(f"{location} has format version {version}; this Proctor reads up to 2. A newer one may help.")


def derived(log: EvalLog, location: str) -> EvalLog:
    """What is computed on reading: tags and metadata with later edits, and what older logs lack."""
    log.location = location
    spec = log.eval
    if not spec.eval_id:
        identity = "\n".join((spec.run_id, spec.created, spec.task, spec.task_id, spec.model))
        spec.eval_id = blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=11).hexdigest()
    older = spec.config.__pydantic_extra__
    if older and "max_messages" in older:
        spec.config.message_limit = older.pop("max_messages")
    apply_updates(log)
    return log


def apply_updates(log: EvalLog) -> None:
    """Bring ``tags`` and ``metadata`` up to date with what the run said and the edits since."""
    tags, metadata = list(log.eval.tags or ()), dict(log.eval.metadata or {})
    for update in log.log_updates or ():
        for edit in update.edits:
            if edit.get("type") == "tags":
                gone = set(edit.get("tags_remove") or ())
                tags = [tag for tag in tags if tag not in gone]
                tags += [tag for tag in edit.get("tags_add") or () if tag not in tags]
            elif edit.get("type") == "metadata":
                metadata.update(edit.get("metadata_set") or {})
                for key in edit.get("metadata_remove") or ():
                    metadata.pop(key, None)
    log.tags, log.metadata = tags, metadata

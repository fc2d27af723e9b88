"""Writing a log while the evaluation runs: one thread a log, group commit."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, Literal

from proctor.contracts import LogSink, LogStore, UsageError
from proctor.log._encode import encode_sample
from proctor.log._json import encode
from proctor.log._layout import EvalLayout, JsonLayout, Layout
from proctor.log._location import log_name
from proctor.log._new_log import create_log
from proctor.log._patience import Patience
from proctor.log._reuse import Reused
from proctor.log._spill import SpillingSink
from proctor.log._spool import ReductionSpool
from proctor.log._summary import summary_fields
from proctor.schema import (
    EvalError,
    EvalLog,
    EvalPlan,
    EvalResults,
    EvalSample,
    EvalSampleScore,
    EvalSampleSummary,
    EvalSpec,
    EvalStats,
    EvalStatus,
)

__all__ = ["LogWriter"]

_PAUSE = 0.05  # seconds between commits, at least
_SHARE = 20  # times the last commit's duration: writing never takes more than a twentieth of the time
_LATEST = 10.0  # seconds after which a sample is written though the buffer is not full
_LONGEST = 5.0  # seconds that a pause takes at most, however slow the disk is: somebody watches the count
_TOGETHER = 32  # samples that wake the writer: so many are still in the processor's cache, those of a pause are not
_GROUP = 4 << 20  # bytes of JSON that are held before they are compressed
_HELD = 4 << 20  # compressed bytes that are held before they are written, pause or not: memory is bounded
_MANY = 100_000  # sample ids beyond this are not listed

_Ack = Callable[[Mapping[str, Any]], object]
_Copies = tuple[Iterator[list[Reused]], Callable[[Reused], object]]
_Item = tuple[EvalSample, EvalSampleSummary | None, _Ack | None]


class LogWriter:
    """Writes one log on a thread of its own. Samples that were acknowledged survive the death of the process.

    Made by ``open``. ``write`` may be called from any thread and returns at once; ``finish`` ends the log.
    """

    def __init__(self, layout: Layout, store: LogStore, name: str, sink: LogSink, log: EvalLog, **options: Any) -> None:
        self.error: Exception | None = None
        """What ended the writer's thread; nothing is written any more."""
        self._patience: Patience = options["patience"]
        self._log = log
        self._layout = layout
        self._store = store
        self._name = name
        self._sink = sink
        self._samples: bool = options["log_samples"]
        self._images: bool = options["log_images"]
        self._buffer: int = max(1, options["buffer"] or 1)
        self._ids: dict[int | str, None] | None = {} if log.eval.dataset.sample_ids is None else None
        self._reductions: ReductionSpool | None = None
        self._queue: SimpleQueue[_Item | None] = SimpleQueue()
        self._taken = self._put = self._size = 0
        self._copies: _Copies | None = None
        self._copied = threading.Event()
        self._closing = threading.Event()
        self._awake = threading.Event()
        self._ended = False
        self._pending: list[tuple[bytes, dict[str, Any], _Ack | None]] = []
        self._thread = threading.Thread(target=self._run, name=f"log {name[-40:]}", daemon=True)

    @classmethod
    def open(
        cls,
        log_dir: str,
        spec: EvalSpec,
        plan: EvalPlan,
        *,
        format: Literal["eval", "json"] = "eval",
        log_samples: bool | None = None,
        log_images: bool | None = None,
        buffer: int | None = None,
        store: LogStore | None = None,
        name: str | None = None,
        patience: Patience | None = None,
        on_spill: Callable[[str, str], object] | None = None,
    ) -> LogWriter:
        """Create the log of an evaluation and write its beginning; blocks.

        Args:
            log_dir: the folder; made when it is not there. A scheme (``s3://``) names a store.
            spec: what is evaluated; the log's name comes from it.
            plan: the solvers.
            format: of the file.
            log_samples: whether samples are written; ``None`` asks ``spec.config``.
            log_images: whether data URIs are kept; ``None`` asks ``spec.config``.
            buffer: samples that a commit waits for (10 s at most); those of an unfinished buffer are not acknowledged.
            store: where ``log_dir`` is, when the caller knows it.
            name: in the folder, in place of one that is made from ``spec`` and not taken yet.
            patience: what says why writing waits while the disk is full, and is told to hurry.
            on_spill: told, on the writer's thread, where the log goes on when its store is lost, and why.

        Raises:
            UsageError: if the folder cannot be written, or the format is unknown.
            FileExistsError: ``name`` is taken.
            OSError: if the beginning of the log cannot be written.
        """
        if format not in ("eval", "json"):
            raise UsageError(f"log format {format!r} is unknown: use eval or json.")
        layout: Layout = EvalLayout() if format == "eval" else JsonLayout()
        patience = patience or Patience()
        names = (log_name(spec, format, copy) for copy in count(1)) if name is None else [name]
        new = create_log(log_dir, names, store, patience, on_spill)
        log = EvalLog(eval=spec, plan=plan, location=new.location)
        config = spec.config
        writer = cls(
            layout,
            new.store,
            new.name,
            new.sink,
            log,
            log_samples=config.log_samples is not False if log_samples is None else log_samples,
            log_images=config.log_images is not False if log_images is None else log_images,
            buffer=buffer,
            patience=patience,
        )
        writer._begin()
        return writer

    def _begin(self) -> None:
        try:
            self._commit(self._layout.begin(self._log))
        except BaseException:
            self._sink.close()
            with suppress(OSError):
                self._store.delete(self._name)  # there is nothing in it
            raise
        self._thread.start()

    @property
    def stalled(self) -> str | None:
        """Why writing waits (a full disk), while it does."""
        return self._patience.stalled

    @property
    def location(self) -> str:
        """Where the log is: in the file that takes the place of a store that is lost, from then on."""
        spilled = self._sink.path if isinstance(self._sink, SpillingSink) else ""
        return spilled or self._log.location

    @property
    def backlog(self) -> int:
        """Samples that wait to be encoded; who has many should let the writer catch up."""
        return self._put - self._taken

    @property
    def backlog_bytes(self) -> int:
        """About how much JSON they will be, judged by the largest samples before them."""
        return (self._put - self._taken) * self._size

    def write(self, sample: EvalSample, summary: EvalSampleSummary | None = None, on_ack: _Ack | None = None) -> None:
        """Take ``sample``, which must not change any more, and return at once.

        Args:
            sample: what to write; a sample of the same id and epoch replaces the earlier one.
            summary: made from the sample when not given.
            on_ack: called on the writer's thread with the summary's fields once the sample can be read back after any
                crash (fields, since few who are told want a record made of them).
        """
        self._put += 1
        self._queue.put((sample, summary, on_ack))
        if self._put - self._taken >= _TOGETHER and not self._awake.is_set():
            self._awake.set()

    def reuse(self, groups: Iterator[list[Reused]], on_copy: Callable[[Reused], object]) -> None:
        """Take over samples of earlier logs, a group between two commits, so that new ones need not wait for them.

        Call it once, and ``reuse_all`` before ``finish``.

        Args:
            groups: asked for the next group on the writer's thread.
            on_copy: called there with each sample once it can be read back; it must not raise.
        """
        self._copies = groups, on_copy
        self._queue.put(_AWAKE)

    def reuse_all(self) -> None:
        """Block until all of them are there, or the writer has failed."""
        self._close()
        while not self._copied.wait(1.0) and self._thread.is_alive():
            pass

    def reduction(self, scorer: str, reducer: str | None, score: EvalSampleScore) -> None:
        """Take one sample's score, reduced over epochs, for the end of the log."""
        if self._reductions is None:
            self._reductions = ReductionSpool()
        self._reductions.add(scorer, reducer, score)

    def finish(
        self,
        status: EvalStatus,
        results: EvalResults | None,
        stats: EvalStats,
        error: EvalError | None = None,
        sample_ids: list[int | str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> str:
        """Write what is queued, then summaries, reductions and header; blocks until all of it is durable.

        Args:
            status: how the evaluation ended.
            results: the metrics, when there are any.
            stats: times and tokens.
            error: what ended the evaluation.
            sample_ids: for a dataset whose ids were not known at the start, in its order; without them, and up to
                100,000, those that were written are listed.
            metadata: added to ``eval.metadata``.

        Returns:
            The location of the log.

        Raises:
            OSError: the log could not be written to its end.
        """
        spec = self._log.eval
        if sample_ids is not None:
            spec, self._ids = _with_ids(spec, sample_ids), None
        if metadata:
            spec = spec.model_copy(update={"metadata": {**(spec.metadata or {}), **metadata}})
        changed: dict[str, Any] = {"status": status, "eval": spec, "results": results, "stats": stats, "error": error}
        changed |= {"tags": list(spec.tags or ()), "metadata": dict(spec.metadata or {})}
        self._log = self._log.model_copy(update=changed)
        self._queue.put(None)
        self._close()
        self._thread.join()
        if self.error is not None:
            raise self.error
        return self.location

    def _close(self) -> None:
        """Let the writer pause no more."""
        self._closing.set()
        self._awake.set()

    # What follows runs on the writer's thread.

    def _run(self) -> None:
        try:
            due = latest = 0.0
            while True:
                self._take(wait=not self._pending and self._copies is None)
                now = time.monotonic()
                if self._copies is not None and (now >= due or self._closing.is_set()):
                    self._copy(*self._copies)
                wanted = now >= due and (len(self._pending) >= self._buffer or now >= latest)
                # The end may be taken from the queue before `finish` has said that it closes.
                if wanted or self._ended or self._closing.is_set() or self._layout.held >= _HELD:
                    self._flush()
                    took = time.monotonic() - now
                    due = now + took + min(max(_PAUSE, _SHARE * took), _LONGEST)
                    latest = now + took + _LATEST
                if self._ended and self._copies is None:
                    break
                if not self._closing.is_set():
                    self._awake.wait(max(_PAUSE, min(due - time.monotonic(), 2 * _PAUSE)))
                    self._awake.clear()
            self._end()
            self._sink.close()
        except Exception as error:
            self.error = error
        finally:
            self._copied.set()
            self._sink.abandon()
            if self._reductions is not None:
                self._reductions.close()

    def _take(self, *, wait: bool) -> None:
        """Encode and compress what is queued; waits for a first sample when told to."""
        item = self._queue.get() if wait and not self._ended else self._next()
        while item is not _EMPTY:
            group: list[tuple[EvalSample, bytes]] = []
            size = 0
            while item is not _EMPTY and item is not None and size < _GROUP:
                if item is not _AWAKE:
                    size += self._encode(item, group)
                item = self._next()
            if group and self._samples:
                self._layout.pack(group)
            if item is None:
                self._ended = True
                return
            if self._layout.held >= _HELD:
                self._flush()

    def _next(self) -> Any:
        try:
            return self._queue.get_nowait()
        except Empty:
            return _EMPTY

    def _encode(self, item: _Item, group: list[tuple[EvalSample, bytes]]) -> int:
        sample, summary, on_ack = item
        try:
            raw = encode_sample(sample, images=self._images) if self._samples else b""
        except Exception as error:  # one odd sample must not end the log; what can be written of it is
            sample = _unwritable(sample, error)
            raw = encode_sample(sample)
        values = summary_fields(sample) if summary is None else summary.to_dict()
        self._pending.append((encode(values) if self._samples else b"", values, on_ack))
        group.append((sample, raw))
        self._taken += 1
        self._size = max(len(raw), self._size - (self._size >> 4))
        self._note_id(sample.id)
        return len(raw)

    def _note_id(self, id: int | str) -> None:
        if self._ids is not None:
            self._ids[id] = None
            if len(self._ids) > _MANY:
                self._ids = None

    def _copy(self, groups: Iterator[list[Reused]], on_copy: Callable[[Reused], object]) -> None:
        """Take some of them into the next commit: each writes the directory of the whole log anew."""
        while self._layout.held < _HELD:
            group = next(groups, None)
            if group is None:
                self._copies = None
                self._flush()
                self._copied.set()
                return
            if self._samples:
                self._layout.copy(group)
            for one in group:
                self._pending.append((encode(one.row) if self._samples else b"", one.row, partial(_told, on_copy, one)))
                self._note_id(one.row["id"])
            if self.backlog or not self._samples:  # a new sample does not wait for old ones
                return

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
        if not pending:
            return
        if self._samples:
            self._commit(self._layout.segment([row for row, _, _ in pending]))
        for _, values, on_ack in pending:
            if on_ack is not None:
                try:
                    on_ack(values)
                except Exception:  # somebody else's fault must not end the log
                    logging.getLogger(__name__).exception("what was to be told of a written sample failed")

    def _end(self) -> None:
        log = self._log
        if self._ids:
            log = log.model_copy(update={"eval": _with_ids(log.eval, in_order(self._ids))})
        if self._reductions is None and log.results is not None and log.results.scores:
            self._reductions = ReductionSpool()
        segment = self._layout.finish(log, self._reductions, self._read, self._replace)
        if segment:
            self._commit(segment)

    def _read(self, start: int, end: int) -> bytes:
        if isinstance(self._sink, SpillingSink):
            return self._sink.read(start, end)
        return self._store.read(self._name, start, end)

    def _replace(self, chunks: Callable[[], Iterable[bytes]]) -> None:
        if isinstance(self._sink, SpillingSink):
            self._sink.replace(chunks)
            return
        self._patience.write(self.location, lambda: self._store.replace(self._name, chunks()))

    def _commit(self, segment: bytes) -> None:
        """Write until it is written: a full disk is waited for, and the log is readable meanwhile."""
        self._patience.write(
            self.location, lambda: self._sink.commit(segment, self._layout.directory), self._commit_nothing
        )
        self._layout.settle()

    def _commit_nothing(self) -> None:
        """Put the former directory back over what a failed commit has left."""
        with suppress(OSError):
            self._sink.commit(b"", self._layout.former())


_EMPTY: Any = object()  # nothing is queued (None is the end)
_AWAKE: Any = object()  # there is something else to do


def _told(on_copy: Callable[[Reused], object], one: Reused, _values: Mapping[str, Any]) -> None:
    on_copy(one)


def in_order(ids: Iterable[int | str]) -> list[int | str]:
    """Numbers by value; ids of other kinds as they come."""
    found = list(ids)
    return sorted(found) if all(isinstance(id, int) for id in found) else found


def _with_ids(spec: EvalSpec, ids: list[int | str]) -> EvalSpec:
    return spec.model_copy(update={"dataset": spec.dataset.model_copy(update={"sample_ids": ids})})


def _unwritable(sample: EvalSample, error: Exception) -> EvalSample:
    text = f"the sample could not be written: {type(error).__name__}: {error}"
    failure = EvalError(message=text, traceback=text, traceback_ansi=text)
    return EvalSample(
        id=sample.id,
        epoch=sample.epoch,
        input=str(sample.input),
        target=str(sample.target),
        uuid=sample.uuid,
        error=failure,
    )

"""Run a unit: pull its samples, record what came of them, end with results."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import anyio
import anyio.lowlevel
from anyio import to_thread

from proctor.contracts import SampleEnd, TaskEnd, TaskStart
from proctor.dataset import IterableDataset
from proctor.engine._deadline import StoodStill
from proctor.engine._errors import eval_error
from proctor.engine._failed_metrics import keep_status, metrics_error
from proctor.engine._isolate import Isolated
from proctor.engine._observe import Observers, sample_summary
from proctor.engine._progress import UnitProgress
from proctor.engine._reuse import Reuse
from proctor.engine._sample import Attempt, run_sample
from proctor.engine._spec import eval_plan, eval_spec
from proctor.engine._tally import Tally
from proctor.engine._unit import Unit
from proctor.engine._workers import Workers
from proctor.limits import run_budget
from proctor.log import LogIndex, LogWriter, Reused, now_iso_seconds, read_eval_log_sample
from proctor.model import use_models
from proctor.monitor import (
    Activity,
    begin_activity,
    doing,
    loop_watch,
    settled,
)
from proctor.schema import (
    EvalError,
    EvalLog,
    EvalResults,
    EvalRetryError,
    EvalRevision,
    EvalSample,
    EvalStats,
    EvalStatus,
    Sample,
    own_metadata,
)

__all__ = ["UnitRun"]

_BACKLOG = 512  # samples that wait for the disk before the next one starts
_BACKLOG_BYTES = 64 << 20  # or so many bytes of them
_PASSED = 100  # samples that are passed over in one step of the loop
_PATIENCE = 0.01  # seconds between looks at the backlog
_TURN = 0.002  # seconds after which a worker whose samples never wait lets others have the loop
_ROUND = 0.02  # seconds that all of them together keep it, since each has its turn in one step of the loop


class _Wanted(NamedTuple):
    """A sample that waits to be run: how to read it, which epoch, and its place in the dataset's order."""

    read: Callable[[], Sample]
    epoch: int
    place: int


class UnitRun:
    """One unit on its way. Observers that were told of its start are told of its end, whatever comes between.

    Args:
        unit: what to run.
        run_id: the run's id.
        progress: where its counters stand.
        observers: who is told.
        revision: the git revision for the log.
        task_id: the id that all attempts at the unit share; made up when not given.
        eval_set_id: the set that the log belongs to.
        on_spill: told where the log goes on when its store is lost, and why; on another thread.
        prior: earlier logs of the same work, oldest first.
    """

    def __init__(
        self,
        unit: Unit,
        run_id: str,
        progress: UnitProgress,
        observers: Observers,
        revision: EvalRevision | None,
        *,
        task_id: str | None = None,
        eval_set_id: str | None = None,
        on_spill: Callable[[str, str, str], object] | None = None,
        prior: Sequence[LogIndex] = (),
    ) -> None:
        self.unit = unit
        self._progress = progress
        self._observers = observers
        self.spec = eval_spec(unit, run_id, revision, task_id=task_id, eval_set_id=eval_set_id, prior=prior)
        self._prior = prior
        self._reuse: Reuse | None = None
        self._plan = eval_plan(unit)
        self._stats = EvalStats(started_at=now_iso_seconds())
        self._started = time.monotonic()
        self._began = time.time()
        self._on_spill = on_spill
        self.log: EvalLog | None = None
        """The header, once the unit is over; also when it was cancelled."""
        self._failure: EvalError | None = None
        self._budget = run_budget()
        self._stopped_by = ""
        self._ending = threading.Lock()
        self._attempts: dict[Attempt, int] = {}  # those that go on, with their samples' places in the dataset's order
        self._tally = Tally(progress, self._stats, lambda *reduced: self._writer.reduction(*reduced))

    async def run(self) -> EvalLog:
        """Run all samples and return the log's header.

        The log is finished whatever happens; a cancellation goes on its way after that.

        Raises:
            UsageError: when no log can be made.
            Exception: what the log could not be finished for.
        """
        options = self.unit.options
        if self._prior:
            self._reuse = await to_thread.run_sync(Reuse, self.unit, self._prior)
        self._writer = await to_thread.run_sync(
            partial(
                LogWriter.open,
                options.log_dir,
                self.spec,
                self._plan,
                format=options.log_format,
                log_samples=options.log_samples,
                buffer=options.log_buffer,
                patience=self._progress.patience,
                on_spill=self._lost_store,
            )
        )
        self._progress.location = self._writer.location
        self._progress.status = "running"
        self._observers.tell(TaskStart(self.unit.id, self.spec))
        status: EvalStatus = "cancelled"
        try:
            if self._reuse is not None and self._reuse.known_at_once:
                self._writer.reuse(self._reuse.groups(), self._reused)
            await self._samples()
            status = "error" if self._failure else "cancelled" if self._stopped_by else self._tally.status()
        except Exception as error:
            self._failure, status = eval_error(error), "error"
        finally:
            if (watch := loop_watch()) is not None:
                watch.beaten()  # a stall that has just ended belongs to this unit, too
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._finish, status)
        assert self.log is not None
        return self.log

    async def _samples(self) -> None:
        """Workers pull samples from one queue: who ends one sends the next request in the same step of the loop."""
        unit = self.unit
        queue = self._wanted()
        with use_models(unit.model, unit.roles):
            workers = Workers(self._progress, lambda: self._work(queue, workers))
            try:
                await workers.run()
            finally:
                self._give_up()

    def _give_up(self) -> None:
        """Record what there is of the samples that did not stop when they were told to."""
        while self._attempts:
            attempt, place = self._attempts.popitem()
            if (sample := attempt.given_up()) is None:
                continue
            if sample.error is None:
                self._record(sample, place)
            else:
                self._progress.outcomes["left_behind"] += 1
                self._cancelled(sample)

    async def _work(self, queue: Iterator[_Wanted | None], workers: Workers) -> None:
        turn = time.monotonic()
        while self._failure is None and not workers.surplus():
            if self._writer.error is not None:
                self._failure = eval_error(self._writer.error)
                return
            try:
                wanted = next(queue)
            except StopIteration:
                return
            except (Exception, SystemExit) as error:  # a generator of samples that raises, or gives an id twice
                self._failure = eval_error(error)
                return
            if self._budget is not None and self._budget.reached:
                self._stopped_by = self._stopped_by or self._budget.reached
                return
            if wanted is None:
                await anyio.lowlevel.checkpoint()
                continue
            one = Isolated(self._one(wanted))
            await one
            # A model that answers at once must not keep the loop from signals and others.
            if not one.suspended and time.monotonic() - turn > min(_TURN, _ROUND / workers.live):
                await anyio.lowlevel.checkpoint()
                turn = time.monotonic()

    def _wanted(self) -> Iterator[_Wanted | None]:
        """Every sample with every epoch, all epochs of a sample together; a sample is read when it starts.

        ``None`` now and then when there is much to pass over: others want the loop meanwhile.
        """
        unit, reuse = self.unit, self._reuse
        epochs = range(1, unit.epochs + 1)
        if isinstance(unit.samples.dataset, IterableDataset):
            for place, sample in enumerate(unit.samples):
                assert sample.id is not None
                for epoch in epochs if reuse is None else reuse.claim(sample.id, place):
                    yield _Wanted(partial(_given, sample), epoch, place)
                if reuse is not None and not place % _PASSED:
                    yield None
            return
        places = ((place, epoch) for place in range(len(unit.samples)) for epoch in epochs)
        for place, epoch in places if reuse is None else reuse.to_run():
            yield _Wanted(partial(unit.samples.__getitem__, place), epoch, place)

    async def _one(self, wanted: _Wanted) -> None:
        doer: Activity | None = None
        try:
            sample = wanted.read()
            self._progress.started += 1
            assert sample.id is not None
            doer = Activity(sample.id, wanted.epoch)
            self._progress.unfinished[doer] = None
            begin_activity(doer)
            retries = [] if self._reuse is None else await self._earlier_errors(self._reuse, sample.id, wanted.epoch)
            earlier = len(retries)
            while True:
                attempt = Attempt(self.unit, sample, wanted.epoch, self._tally.scorers, self._not_begun)
                self._attempts[attempt] = wanted.place
                doer.coroutine = run = run_sample(attempt, self._cancelled)
                try:
                    done = await run
                finally:
                    self._attempts.pop(attempt, None)
                spent = self._budget is not None and self._budget.reached
                if done.error is None or spent or len(retries) - earlier >= self.unit.retry_on_error:
                    break
                self._tally.add_usage(done)
                self._progress.retried += not retries
                retries.append(EvalRetryError(**done.error.model_dump(), events=list(done.events)))
                doer.attempt += 1
            if retries:
                done.error_retries = retries
            self._record(done, wanted.place)
            if self._behind():
                await self._catch_up()
        except (Exception, SystemExit) as error:
            # Not the sample's own error (those are in its record): its data can't be read, or we are at fault.
            self._failure = self._failure or eval_error(error)
        finally:
            if doer is not None:
                del self._progress.unfinished[doer]

    def _not_begun(self) -> int | None:
        """How many samples are still to begin, at most; ``None`` when that is not known."""
        if self._failure is not None or self._stopped_by or self.log is not None:
            return 0
        if self.unit.total is None:
            return None
        reused = 0 if self._reuse is None else self._reuse.plan.reused
        return max(0, self.unit.total - reused - self._progress.started)

    async def _earlier_errors(self, reuse: Reuse, id: int | str, epoch: int) -> list[EvalRetryError]:
        """Those of attempts that earlier logs have."""
        if not reuse.failed(id, epoch):
            return []
        self._progress.retried += 1
        return await to_thread.run_sync(reuse.earlier_errors, id, epoch)

    def _reused(self, one: Reused) -> None:
        """On the writer's thread: a sample of an earlier log stands in this one, too."""
        assert self._reuse is not None
        try:
            fields = one.row if self._tally.values_only else one.fields()
            self._tally.add_reused(one.row, fields, self._reuse.place(one.row["id"]))
            self._progress.done += 1
        except Exception as error:  # without its score no result would be true
            self._failure = self._failure or eval_error(error)

    async def _catch_up(self) -> None:
        """Wait until the log has written most of what it was given; while the disk is full nothing more is paid for."""
        with doing("log", self._writer.stalled or f"{self._writer.backlog} samples are to be written"):
            while self._behind() and self._writer.error is None:  # noqa: ASYNC110 - a thread drains it
                await anyio.sleep(_PATIENCE)

    def _behind(self) -> bool:
        writer = self._writer
        return writer.stalled is not None or writer.backlog > _BACKLOG or writer.backlog_bytes > _BACKLOG_BYTES

    def _lost_store(self, path: str, reason: str) -> None:
        lost, self._progress.location = self._progress.location, path
        if self._on_spill is not None:
            self._on_spill(lost, path, reason)

    def _cancelled(self, sample: EvalSample) -> None:
        self._tally.add_cancelled(sample)
        self._writer.write(sample)

    def _record(self, sample: EvalSample, place: int) -> None:
        self._tally.add(sample, place)
        if sample.error is not None and self._tally.too_many_errors:
            self._failure = self._failure or sample.error
        self._writer.write(sample, on_ack=self._acknowledged)

    def _acknowledged(self, fields: Mapping[str, Any]) -> None:
        """On the writer's thread: the sample can be read back from now on."""
        self._progress.done += 1
        if self._observers:
            summary = sample_summary(fields)
            load = partial(read_eval_log_sample, self._writer.location, fields["id"], fields["epoch"])
            self._observers.tell(SampleEnd(self.unit.id, summary, load))

    def overdue(self) -> float:
        """Seconds for which a sample is over its time limit; negative when none is. May be asked on any thread."""
        limits = [attempt.limits for attempt in settled(self._attempts) if not attempt.solved]
        return max((each.overtime()[1] for each in limits if each is not None), default=-1.0)

    def end(self, why: str, *, error: bool) -> None:
        """On another thread, when the event loop can't: finish the log with what there is; blocks.

        Args:
            why: what is wrong.
            error: it is an error of this unit; else it was cancelled.
        """
        if not self._progress.location:  # there is no log yet
            return
        self._give_up()
        if error:
            self._failure = self._failure or eval_error(StoodStill(why))
        self._finish("error" if error else "cancelled")

    def _finish(self, status: EvalStatus) -> None:
        """End the log, once: whoever comes second waits until that is done. Blocks, so it runs in a thread."""
        with self._ending:
            if self.log is None:
                self._write_end(status)

    def _write_end(self, status: EvalStatus) -> None:
        """Write results and header."""
        lost: Exception | None = None
        if status == "cancelled":
            self._progress.patience.hurry()
        if self._reuse is not None:
            if not self._reuse.known_at_once:
                self._writer.reuse(self._reuse.groups(), self._reused)
            self._writer.reuse_all()
            if self._failure is not None:
                status = "error"
        results, status = self._summed_up(status)
        self._stats.completed_at = now_iso_seconds()
        self._stats.connection_limit_history = self._limits_moved()
        own = {"proctor": {**own_metadata(self.spec), **self._known_at_the_end(results)}}
        self.spec = self.spec.model_copy(update={"metadata": {**(self.spec.metadata or {}), **own}})
        try:
            self._writer.finish(status, results, self._stats, error=self._failure, metadata=own)
        except Exception as error:
            lost, status = error, "error"
            self._failure = self._failure or eval_error(error)
        self.log = EvalLog(
            status=status,
            eval=self.spec,
            plan=self._plan,
            results=results,
            stats=self._stats,
            error=self._failure,
            location=self._writer.location,
        )
        self._observers.tell(TaskEnd(self.unit.id, self.log, self._writer.location))
        self._progress.finish(self.log, time.monotonic() - self._started)
        if lost is not None:
            raise lost

    def _known_at_the_end(self, results: EvalResults | None) -> dict[str, Any]:
        """What the log's header says in ``metadata["proctor"]`` beyond what it said at the start."""
        late: dict[str, Any] = {}
        if results is None:  # where the counts stand otherwise
            late["outcomes"] = self._tally.outcomes(scored=self._failure is not None)
        if self._reuse is not None:
            late["reused"] = self._reuse.copied
        if self._stopped_by:
            late["stopped_by"] = self._stopped_by
        if stalls := self._stalls():
            late["loop_stalls"] = stalls
        return late

    def _summed_up(self, status: EvalStatus) -> tuple[EvalResults | None, EvalStatus]:
        """The results, unless something ended the unit early, and the status: metrics can fail too."""
        if self._failure is not None:
            return None, status
        try:
            results = self._tally.results()
        except (Exception, SystemExit) as error:  # whatever it is: the samples are kept all the same
            self._failure = eval_error(error)
            return None, "error"
        if self._tally.failures:
            self._failure = metrics_error(self._tally.failures)
            keep_status(results, status)
            status = "error"
        return results, status

    def _limits_moved(self) -> list[dict[str, Any]]:
        """How the limit of the model's connections moved while this unit ran."""
        return [
            {
                "timestamp": change.timestamp,
                "model": self.unit.model.name,
                "old_limit": change.old,
                "new_limit": change.new,
                "reason": change.reason,
            }
            for change in self.unit.connections.history
            if change.timestamp >= self._began
        ]

    def _stalls(self) -> list[dict[str, Any]]:
        """Where the event loop stood still while this unit ran, with the seconds of it."""
        watch = loop_watch()
        return [] if watch is None else [stall.record() for stall in watch.stalls(self._started)]


def _given(sample: Sample) -> Sample:
    return sample

"""Grades as they are given: kept in a small log beside the one that is to have them, until that is written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import count

from proctor.contracts import LogBusyError, LogStore, UsageError
from proctor.log._eval_file import EvalFile
from proctor.log._hold import hold_log
from proctor.log._location import store_for
from proctor.log._spill import drop_spill, list_spills
from proctor.log._writer import LogWriter
from proctor.log._zip_read import BadLogError
from proctor.schema import EvalLog, EvalSample, EvalStats

__all__ = ["Grades"]


class Grades:
    """What one scoring has come to, by this process and by those before it that were stopped.

    Each process writes a log of its own, ``<target>.grades-<identity>-<number>``, so a store needs no more than for any
    log, and nothing is deleted before all stands in the target. A grade is a sample with its new scores and events and
    what it used, and nothing else. All methods block; ``keep`` returns at once.

    Args:
        target: the log that will have the grades.
        identity: of the scoring: another one's grades are not these.
        header: of the log that is scored.
        fresh: throw away what earlier processes left.
        on_spill: told where the grades go on when their store is lost, and why.

    Raises:
        UsageError: the same scoring goes on elsewhere, or nothing can be written there.
    """

    def __init__(
        self,
        target: str,
        identity: str,
        header: EvalLog,
        *,
        fresh: bool = False,
        on_spill: Callable[[str, str], object] | None = None,
    ) -> None:
        self._prefix = f"{target}.grades-{identity}"
        self._leases = ExitStack()
        self._earlier: list[EvalFile] = []
        self._names: list[tuple[LogStore, str]] = []
        self._kept = self._ended = False
        self._spilled: str | None = None
        self._on_spill = on_spill
        try:
            self._refuse_spills()
            self._find()
            if fresh:
                self._delete()
            self._keys = [set(file.keys()) for file in self._earlier]
            self._writer = self._new(header)
        except BaseException:
            self._leases.close()
            raise

    @property
    def location(self) -> str:
        """Where the grades of this process are."""
        return self._writer.location

    @property
    def error(self) -> Exception | None:
        """What ended the writing of grades: nothing more is kept."""
        return self._writer.error

    @property
    def stalled(self) -> str | None:
        """Why writing waits (a full disk), while it does."""
        return self._writer.stalled

    @property
    def spilled(self) -> bool:
        """Whether they are on this machine, since their store was lost."""
        return self._spilled is not None

    def __len__(self) -> int:
        return len(set().union(*self._keys))

    def earlier(self, sample: EvalSample) -> list[EvalSample]:
        """What earlier processes have of a sample, in their order."""
        key = str(sample.id), sample.epoch
        held = (file for file, keys in zip(self._earlier, self._keys, strict=True) if key in keys)
        return [grade for file in held if (grade := file.sample(*key, "full")).uuid == sample.uuid]

    def keep(self, grade: EvalSample, on_ack: Callable[[], object]) -> None:
        """Write a grade, and call ``on_ack`` on the writer's thread once it can be read back after any crash."""
        self._kept = True
        self._writer.write(grade, on_ack=lambda fields: on_ack())

    def stop(self) -> None:
        """Write what was kept, and leave it for a process that goes on."""
        self._finish()
        if not self._kept:
            store, name = self._names.pop()
            with suppress(OSError):
                store.delete(name)
        self._leases.close()

    def remove(self) -> None:
        """All stands in the target: the grades are not needed any more."""
        self._finish()
        with suppress(OSError):  # what is left does no harm
            if self._spilled is not None:
                drop_spill(self._spilled)
            self._delete()
        self._leases.close()

    def _finish(self) -> None:
        if not self._ended:
            self._ended = True
            with suppress(Exception):  # it stands in `error`
                self._writer.finish("cancelled", None, EvalStats())

    def _refuse_spills(self) -> None:
        for spill in list_spills():
            if spill.location.startswith(f"{self._prefix}-"):
                raise UsageError(
                    f"grades of this scoring wait in {spill.path}, since their store was lost: send them with "
                    f"`proctor log push {spill.path}` first"
                )

    def _find(self) -> None:
        """Take hold of what earlier processes left."""
        for number in count(1):
            location = f"{self._prefix}-{number}"
            store, name = store_for(location)
            try:
                stat = store.stat(name)
            except (FileNotFoundError, NotADirectoryError):
                return
            try:
                self._leases.enter_context(hold_log(store, name, location))
            except LogBusyError as error:
                raise UsageError(f"the same scoring is under way, or was lately: {error}") from error
            self._names.append((store, name))
            with suppress(BadLogError):  # its process died before it had written anything
                self._earlier.append(EvalFile(location, store, name, stat))

    def _new(self, header: EvalLog) -> LogWriter:
        own = f"{self._prefix}-{len(self._names) + 1}"
        folder, slash, name = own.rpartition("/")
        try:
            writer = LogWriter.open(
                folder + slash, header.eval, header.plan, log_samples=True, name=name, on_spill=self._lost_store
            )
        except FileExistsError as error:
            raise UsageError(f"the same scoring has just begun elsewhere: {own} is there") from error
        except UsageError as error:
            if isinstance(error.__cause__, OSError):
                raise UsageError(
                    f"grades can't be kept beside {self._prefix.rpartition('.')[0]} ({error.__cause__}). Name another "
                    "place with --output-file."
                ) from error
            raise
        self._names.append(store_for(own))
        return writer

    def _lost_store(self, path: str, reason: str) -> None:
        self._spilled = path
        if self._on_spill is not None:
            self._on_spill(path, reason)

    def _delete(self) -> None:
        while self._names:  # the last first: what is left by a process that dies here is found again
            store, name = self._names[-1]
            with suppress(FileNotFoundError):
                store.delete(name)
            self._names.pop()
        self._earlier = []

"""Where a file dataset takes its samples from: the file itself, or a spool of what a record function made."""

from __future__ import annotations

import pickle
import tempfile
import threading
import warnings
import weakref
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Sequence

from proctor.contracts import UsageError
from proctor.dataset._fields import (
    FieldSpec,
    NoSampleError,
    RecordToSample,
    close_match,
    missing_field,
    record_to_sample,
    sample_errors,
    samples_of,
)
from proctor.dataset._ids import GivenIds
from proctor.dataset._records import Place, RecordFile
from proctor.schema import Sample

_SPOOL_MEMORY = 32 << 20


class SampleStore(ABC):
    """Samples by row. What is kept of each is its place, its id, its line and the number of its choices."""

    def __init__(self, file: RecordFile, auto_id: bool) -> None:
        self.file = file
        self._auto_id = auto_id
        self.ids = GivenIds()
        self.lines: array[int] = array("Q")
        self.choice_counts: array[int] = array("I")

    def _note(self, sample: Sample, line: int) -> None:
        if self._auto_id:
            sample.id = len(self) + 1
        self.ids.append(sample.id)
        self.lines.append(line)
        self.choice_counts.append(len(sample.choices or ()))

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, row: int) -> str:
        """File and line of a row, for messages."""
        return f"{self.file.path}, line {self.lines[row]}"

    @abstractmethod
    def read(self, row: int) -> Sample:
        """A new object for the sample in ``row``, as the data gave it."""


class FieldStore(SampleStore):
    """Samples that a ``FieldSpec`` finds in the records of a file, parsed anew at each access."""

    def __init__(self, file: RecordFile, spec: FieldSpec, auto_id: bool, finish: Callable[[Sample], Sample]) -> None:
        super().__init__(file, auto_id)
        self._spec = spec
        self._finish = finish
        self._starts: array[int] = array("Q")
        self._ends: array[int] = array("Q")
        self._fields_seen: dict[str, None] = {}
        for place, record in file.scan():
            if record.keys() != self._fields_seen.keys():
                self._fields_seen.update(dict.fromkeys(record))
            try:
                sample = record_to_sample(record, spec)
            except ValueError as error:
                raise file.error(place.line, sample_errors(error)) from None
            self._starts.append(place.start)
            self._ends.append(place.end)
            self._note(sample, place.line)
        self._check_fields()

    def _check_fields(self) -> None:
        """Refuse a field name that no record has: the scores of such a run would all be wrong."""
        if not len(self):
            return
        known = self._fields_seen
        for name in self._spec.named_fields():
            if name not in known:
                raise UsageError(f"{self.file.path}: {missing_field(name, known)} Correct the FieldSpec.")
        target = self._spec.target
        if target is None or target in known:
            return
        if close := close_match(target, known):
            raise UsageError(
                f"{self.file.path}: there is no field {target!r}, but there is {close!r}. If that is the target, say "
                f"sample_fields=FieldSpec(target={close!r})."
            )
        warnings.warn(
            f"{self.file.path}: the samples have no target, since there is no field {target!r}. Fields: "
            f"{', '.join(map(repr, known))}. Name the one that holds the target, sample_fields=FieldSpec(target=...), "
            f"or say that there is none: FieldSpec(target=None).",
            stacklevel=2,
        )

    def read(self, row: int) -> Sample:
        place = Place(self._starts[row], self._ends[row], self.lines[row])
        sample = record_to_sample(self.file.read(place), self._spec)
        if self._auto_id:
            sample.id = row + 1
        return self._finish(sample)


class SpoolStore(SampleStore):
    """Samples that a record function made, in a temporary file.

    The function is called once for each record, in the order of the file, as authors expect who count or draw random
    numbers in it. Its samples are kept as pickles (in memory up to 32 MiB).
    """

    def __init__(
        self, file: RecordFile, make: RecordToSample, auto_id: bool, finish: Callable[[Sample], Sample]
    ) -> None:
        super().__init__(file, auto_id)
        self._lock = threading.Lock()
        self._spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL_MEMORY)  # noqa: SIM115  # closed with this object
        weakref.finalize(self, self._spool.close)
        self._ends: array[int] = array("Q", [0])
        self._objects: dict[int, Sample] = {}
        for place, record in file.scan():
            for sample in self._call(make, record, place):
                self._note(sample, place.line)
                self._write(finish(sample))

    def _call(self, make: RecordToSample, record: dict[str, object], place: Place) -> Sequence[Sample]:
        try:
            return samples_of(make(record))
        except NoSampleError as error:
            raise self.file.error(place.line, str(error)) from None
        except KeyError as error:
            name = error.args[0] if error.args else None
            if isinstance(name, str) and name not in record:
                raise self.file.error(
                    place.line, f"the record function failed: {missing_field(name, record)}"
                ) from error
            raise self._failed(place, error) from error
        except Exception as error:
            raise self._failed(place, error) from error

    def _failed(self, place: Place, error: Exception) -> UsageError:
        return self.file.error(
            place.line, f"the record function failed with {type(error).__name__}: {sample_errors(error)}"
        )

    def _write(self, sample: Sample) -> None:
        try:
            data = pickle.dumps(sample, pickle.HIGHEST_PROTOCOL)
        except Exception:  # whatever an author put into the metadata
            self._objects[len(self._ends) - 1] = sample
            data = b""
        self._spool.write(data)
        self._ends.append(self._ends[-1] + len(data))

    def read(self, row: int) -> Sample:
        if (sample := self._objects.get(row)) is not None:
            return sample.model_copy()
        with self._lock:
            self._spool.seek(self._ends[row])
            data = self._spool.read(self._ends[row + 1] - self._ends[row])
        loaded: Sample = pickle.loads(data)
        return loaded

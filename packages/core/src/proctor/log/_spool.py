"""Reduced scores and edited samples on their way into a log, kept in temporary files instead of memory."""

from __future__ import annotations

import threading
import weakref
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from tempfile import SpooledTemporaryFile

from proctor.log._encode import encode_sample
from proctor.log._json import encode
from proctor.log._summary import summary_fields
from proctor.log._zip_write import member_name
from proctor.log._zstd import compress_many, decompress
from proctor.schema import EvalSample, EvalSampleReductions, EvalSampleScore

__all__ = ["ReductionSpool", "SampleSpool"]

_IN_MEMORY = 1 << 16
_CHUNK = 1 << 18
_TOGETHER = 64  # scores


def _file_of(spool: object) -> SpooledTemporaryFile[bytes]:
    """A file that goes with ``spool`` at the latest: nobody closes that of a writer that was left."""
    file = SpooledTemporaryFile[bytes](_IN_MEMORY)
    weakref.finalize(spool, file.close)
    return file


class ReductionSpool:
    """Collects scores per scorer and reducer, in any order, and gives them back as the JSON of ``reductions.json``."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str | None], SpooledTemporaryFile[bytes]] = {}
        self._waiting: dict[tuple[str, str | None], list[EvalSampleScore]] = {}
        self._lock = threading.Lock()

    def add(self, scorer: str, reducer: str | None, score: EvalSampleScore) -> None:
        """Take one sample's reduced score, which must not change any more."""
        with self._lock:
            waiting = self._waiting.setdefault((scorer, reducer), [])
            waiting.append(score)
            if len(waiting) >= _TOGETHER:
                self._store()

    def _store(self) -> None:
        """Bring the scores that wait into the files: one call of the encoder for many costs a third of one for each."""
        for key, scores in self._waiting.items():
            if scores:
                self._append(key, [encode(scores)[1:-1]])
                scores.clear()

    def _append(self, key: tuple[str, str | None], chunks: Iterable[bytes]) -> None:
        file = self._files.get(key)
        if file is None:
            file = self._files[key] = _file_of(self)
        else:
            file.write(b",")
        for chunk in chunks:
            file.write(chunk)

    def extend(self, other: ReductionSpool) -> None:
        """Take all scores of another spool, which is not used any more."""
        with self._lock:
            self._store()
            other._store()
            for key, source in other._files.items():
                source.seek(0)
                self._append(key, iter(partial(source.read, _CHUNK), b""))

    def chunks(self) -> Iterator[bytes]:
        """The array of ``EvalSampleReductions``, in pieces, in the order in which scorers were first seen."""
        with self._lock:
            self._store()
        yield b"["
        for index, ((scorer, reducer), file) in enumerate(self._files.items()):
            head = encode(EvalSampleReductions(scorer=scorer, reducer=reducer, samples=[]))
            yield (b"," if index else b"") + head[:-2]  # the samples are the last field: take "]}" off
            file.seek(0)
            while chunk := file.read(_CHUNK):
                yield chunk
            yield b"]}"
        yield b"]"

    def close(self) -> None:
        """Remove the files."""
        for file in self._files.values():
            file.close()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a sample's member and its summary stand in the spool."""

    start: int
    compressed: int
    crc: int
    size: int
    summary: int


class SampleSpool:
    """Edited samples, compressed as a log has them. May be used from several threads."""

    def __init__(self) -> None:
        self._file = _file_of(self)
        self._places: dict[str, _Place] = {}
        self._end = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def add(self, sample: EvalSample) -> None:
        """Take a sample; one of the same id and epoch is replaced."""
        raw = encode_sample(sample)
        [packed] = compress_many([raw])
        summary = encode(summary_fields(sample))
        with self._lock:
            self._file.seek(self._end)
            self._file.write(packed)
            self._file.write(summary)
            place = _Place(self._end, len(packed), zlib.crc32(raw), len(raw), len(summary))
            self._places[_name(sample.id, sample.epoch)] = place
            self._end += len(packed) + len(summary)

    def members(self) -> Iterator[tuple[bytes, int, int, bytes]]:
        """Name, CRC-32, size and compressed data of each member, in the order in which they came."""
        for name, place in self._places.items():
            yield name.encode(), place.crc, place.size, self._read(place.start, place.compressed)

    def content(self, id: int | str, epoch: int) -> bytes | None:
        """The JSON of a sample that is here."""
        place = self._places.get(_name(id, epoch))
        return None if place is None else decompress(self._read(place.start, place.compressed), place.size)

    def summary(self, id: int | str, epoch: int) -> bytes | None:
        """The JSON of the summary of a sample that is here."""
        place = self._places.get(_name(id, epoch))
        return None if place is None else self._read(place.start + place.compressed, place.summary)

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def _read(self, start: int, length: int) -> bytes:
        with self._lock:
            self._file.seek(start)
            return self._file.read(length)


def _name(id: int | str, epoch: int) -> str:
    return member_name(f"samples/{id}_epoch_{epoch}.json").decode()

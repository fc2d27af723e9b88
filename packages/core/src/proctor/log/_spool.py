"""Reduced scores on their way to the end of the log, kept in temporary files instead of memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile

from proctor.log._json import encode
from proctor.schema import EvalSampleReductions, EvalSampleScore

__all__ = ["ReductionSpool"]

_IN_MEMORY = 1 << 16
_CHUNK = 1 << 18


class ReductionSpool:
    """Collects scores per scorer and reducer, in any order, and gives them back as the JSON of ``reductions.json``."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str | None], SpooledTemporaryFile[bytes]] = {}
        self._lock = threading.Lock()

    def add(self, scorer: str, reducer: str | None, score: EvalSampleScore) -> None:
        """Take one sample's reduced score."""
        raw = encode(score)
        with self._lock:
            file = self._files.get((scorer, reducer))
            if file is None:
                file = self._files[scorer, reducer] = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed in close
                file.write(raw)
            else:
                file.write(b"," + raw)

    def chunks(self) -> Iterator[bytes]:
        """The array of ``EvalSampleReductions``, in pieces, in the order in which scorers were first seen."""
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

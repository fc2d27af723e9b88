"""The commits of a small run, for tests that cut them or bring them between two reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

from log_samples import sample, spec, stats

from proctor.log import FileStore, LogWriter
from proctor.schema import EvalPlan


class Commit(NamedTuple):
    """What a commit writes, and where, and what was there before."""

    before: bytes
    write: bytes
    offset: int

    def cut(self, done: int) -> bytes:
        """The content when only ``done`` bytes of it are written."""
        return self.before[: self.offset] + self.write[:done] + self.before[self.offset + done :]

    @property
    def after(self) -> bytes:
        """The content when it is whole."""
        return self.before[: self.offset] + self.write


class _Recording(FileStore):
    """Keeps what each commit wrote."""

    def __init__(self) -> None:
        self.commits: list[tuple[bytes, bytes]] = []

    def create(self, name: str) -> Any:
        sink = super().create(name)
        write = sink.commit

        def commit(segment: bytes, directory: bytes | bytearray) -> None:
            self.commits.append((bytes(segment), bytes(directory)))
            write(segment, directory)

        sink.commit = commit  # type: ignore[method-assign]  # a spy on the real sink
        return sink


def commits(folder: Path, format: Literal["eval", "json"], samples: int = 3) -> list[Commit]:
    """The commits of a run whose writer is given ``samples`` samples; the first one is the log's beginning."""
    store = _Recording()
    writer = LogWriter.open(str(folder), spec(samples), EvalPlan(), format=format, store=store)
    for number in range(1, samples + 1):
        writer.write(sample(number))
    writer.finish("success", None, stats())
    found, offset, content = [], 0, b""
    for segment, directory in store.commits:
        found.append(Commit(content, segment + directory, offset))
        content = content[:offset] + segment + directory
        offset += len(segment)
    return found

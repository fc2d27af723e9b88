"""Where logs live: a folder, the memory of the process, an object store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["LogSink", "LogStore", "Stat"]


@dataclass(frozen=True, slots=True)
class Stat:
    """What a store knows about a log without reading it.

    Args:
        size: in bytes.
        etag: changes whenever the content does.
        mtime: the last change, in seconds since the epoch.
    """

    size: int
    etag: str
    mtime: float


class LogSink(ABC):
    """A log that is being written. Made by ``LogStore.create``; used by one thread at a time."""

    @abstractmethod
    def commit(self, segment: bytes, directory: bytes | bytearray) -> None:
        """Append ``segment`` behind all earlier ones, and put ``directory`` behind it in the place of the former one.

        Durable on return. When it raises, the log is as it was before (or can be recovered to that), and the same
        commit may be tried again.

        Raises:
            OSError: the store could not take it; ``errno.ENOSPC`` and ``errno.EDQUOT`` mean that waiting may help.
        """

    @abstractmethod
    def close(self) -> None:
        """Give up the log and its lease. Harmless when called twice."""


class LogStore(ABC):
    """A place for logs, named by what follows the scheme in their location.

    All methods are synchronous and may be called from any thread. A missing log is a ``FileNotFoundError``.
    """

    @abstractmethod
    def create(self, name: str) -> LogSink:
        """A new, empty log; whoever holds its sink is alive (see ``live``).

        Raises:
            FileExistsError: the name is taken.
        """

    @abstractmethod
    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes ``[start, end)`` (up to the end of the log when ``None``; fewer when the log is shorter)."""

    @abstractmethod
    def stat(self, name: str) -> Stat:
        """Size, etag and time of change."""

    @abstractmethod
    def list(self, prefix: str, *, recursive: bool = True) -> Iterator[tuple[str, Stat]]:
        """The files below the folder ``prefix``, in no particular order; nothing when there is no such folder."""

    @abstractmethod
    def replace(self, name: str, chunks: Iterable[bytes], if_match: str | None = None) -> Stat:
        """Write the log as a whole; readers see the old content or the new, never a mixture.

        Args:
            name: created when it does not exist.
            chunks: the new content.
            if_match: the etag that the log must have.

        Raises:
            FileExistsError: the log has another etag: somebody else has changed it.
        """

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove the log."""

    def live(self, name: str) -> bool:
        """Whether a process is writing the log now, as far as the store can tell."""
        return False

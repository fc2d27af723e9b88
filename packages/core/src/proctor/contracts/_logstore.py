"""Where logs live: a folder, the memory of the process, an object store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import ClassVar, Self

from proctor.contracts._errors import UsageError

__all__ = ["LogBusyError", "LogLease", "LogSink", "LogStore", "Stat"]


class LogBusyError(UsageError):
    """A log is written or held by somebody else, who is alive.

    Args:
        name: of the log, in its store.
        host: where the holder runs, when that is known.
        pid: its process there.
        since: when it began, in seconds since the epoch.
    """

    def __init__(
        self, name: str, *, host: str | None = None, pid: int | None = None, since: float | None = None
    ) -> None:
        self.name, self.host, self.pid, self.since = name, host, pid, since
        who = f"process {pid}" if pid is not None else "another process"
        if host is not None:
            who += f" on {host}"
        if since is not None:
            who += f" since {datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M:%S} UTC"
        super().__init__(f"{name} is in use by {who}. Wait until it is done, or stop it first.")


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
            OSError: the store could not take it; ``errno.ENOSPC`` and ``errno.EDQUOT`` mean that waiting may help. If
                the store is not ``local``, so do all others but ``FileNotFoundError`` and ``PermissionError``.
        """

    @abstractmethod
    def close(self) -> None:
        """Give up the log and its lease. Harmless when called twice; when it raises, it may be tried again.

        Raises:
            OSError: as for ``commit``: a store that keeps segments while the log grows makes one thing of them now.
        """

    def abandon(self) -> None:
        """Give up the log as it is, without waiting for a store that may be out of reach."""
        self.close()


class LogLease:
    """A log that is held: nobody else can hold it until ``close``, or the end of the ``with`` block.

    The holder may ``replace`` the log; the lease stays with its name. This class itself holds nothing: it is the lease
    of a store that has none.
    """

    def close(self) -> None:
        """Let go of the log. Harmless when called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class LogStore(ABC):
    """A place for logs, named by what follows the scheme in their location.

    All methods are synchronous and may be called from any thread. A missing log is a ``FileNotFoundError``.
    """

    local: ClassVar[bool] = True
    """Whether logs stay on this machine; a store that can be out of reach says no."""

    def check(self, folder: str, *, dry: bool = False) -> None:
        """Look whether logs can be written to ``folder``, before anything is spent on samples for it.

        Args:
            folder: as for ``list``.
            dry: change nothing there.

        Raises:
            UsageError: they can't; the message says why and what to do.
        """
        return  # a store that says nothing is asked by the first write

    @abstractmethod
    def create(self, name: str) -> LogSink:
        """A new, empty log; whoever holds its sink is alive (see ``live``).

        Raises:
            FileExistsError: the name is taken.
            OSError: it is no name of a log (empty, or that of a folder).
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
        """Whether a process is writing or holding the log now, as far as the store can tell."""
        return False

    def hold(self, name: str) -> LogLease:
        """Claim an existing log for a resume or an edit; of all who try at once, one succeeds.

        A store that overrides nothing refuses a log that is ``live`` and can't keep two holders apart.

        Raises:
            LogBusyError: a process is writing it, or holds it.
            FileNotFoundError: there is no such log.
        """
        if self.live(name):
            raise LogBusyError(name)
        self.stat(name)
        return LogLease()

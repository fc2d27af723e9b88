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

    Example:
        >>> from proctor.contracts import LogBusyError
        >>> error = LogBusyError("runs/b.eval", host="node1", pid=4242)
        >>> str(error)
        'runs/b.eval is in use by process 4242 on node1. Wait until it is done, or stop it first.'
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

    Example:
        >>> Stat(size=1024, etag="5d41402a", mtime=1767225600.0).size
        1024
    """

    size: int
    etag: str
    mtime: float


class LogSink(ABC):
    """A log that is being written. Made by ``LogStore.create``; used by one thread at a time.

    Example:
        >>> sink = store.create("runs/c.eval")
    """

    @abstractmethod
    def commit(self, segment: bytes, directory: bytes | bytearray) -> None:
        """Append ``segment`` behind all earlier ones, and put ``directory`` behind it in the place of the former one.

        Durable on return. When it raises, the log is as it was before (or can be recovered to that), and the same
        commit may be tried again.

        Raises:
            OSError: the store could not take it; ``errno.ENOSPC`` and ``errno.EDQUOT`` mean that waiting may help. If
                the store is not ``local``, so do all others but ``FileNotFoundError`` and ``PermissionError``.

        Example:
            >>> sink.commit(b"one ", b"[1]")
            >>> sink.commit(b"two ", b"[1,2]")
            >>> store.read("runs/c.eval")
            b'one two [1,2]'
        """

    @abstractmethod
    def close(self) -> None:
        """Give up the log and its lease. Harmless when called twice; when it raises, it may be tried again.

        Raises:
            OSError: as for ``commit``: a store that keeps segments while the log grows makes one thing of them now.

        Example:
            >>> sink.close()
            >>> sink.close()
        """

    def abandon(self) -> None:
        """Give up the log as it is, without waiting for a store that may be out of reach.

        Example:
            >>> sink.abandon()
        """
        self.close()


class LogLease:
    """A log that is held: nobody else can hold it until ``close``, or the end of the ``with`` block.

    The holder may ``replace`` the log; the lease stays with its name. This class itself holds nothing: it is the lease
    of a store that has none.

    Example:
        >>> from proctor.contracts import LogLease
        >>> with store.hold("runs/b.eval") as lease:
        ...     isinstance(lease, LogLease)
        True
    """

    def close(self) -> None:
        """Let go of the log. Harmless when called twice.

        Example:
            >>> lease.close()
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class LogStore(ABC):
    """A place for logs, named by what follows the scheme in their location.

    All methods are synchronous and may be called from any thread. A missing log is a ``FileNotFoundError``.

    Example:
        >>> import hashlib
        >>> from proctor.contracts import LogSink, LogStore, Stat
        >>> class DictSink(LogSink):
        ...     def __init__(self, logs, name):
        ...         self.logs, self.name, self.kept = logs, name, b""
        ...
        ...     def commit(self, segment, directory):
        ...         self.kept += segment
        ...         self.logs[self.name] = self.kept + bytes(directory)
        ...
        ...     def close(self):
        ...         pass
        >>> class DictStore(LogStore):
        ...     def __init__(self):
        ...         self.logs = {}
        ...
        ...     def create(self, name):
        ...         if name in self.logs:
        ...             raise FileExistsError(name)
        ...         self.logs[name] = b""
        ...         return DictSink(self.logs, name)
        ...
        ...     def read(self, name, start=0, end=None):
        ...         if name not in self.logs:
        ...             raise FileNotFoundError(name)
        ...         return self.logs[name][start:end]
        ...
        ...     def stat(self, name):
        ...         data = self.read(name)
        ...         return Stat(len(data), hashlib.sha256(data).hexdigest(), mtime=0.0)
        ...
        ...     def list(self, prefix, *, recursive=True):
        ...         folder = prefix.rstrip("/") + "/"
        ...         for name in sorted(self.logs):
        ...             if name.startswith(folder) and (recursive or "/" not in name.removeprefix(folder)):
        ...                 yield name, self.stat(name)
        ...
        ...     def replace(self, name, chunks, if_match=None):
        ...         if if_match is not None and self.stat(name).etag != if_match:
        ...             raise FileExistsError(f"somebody else has changed {name}")
        ...         self.logs[name] = b"".join(chunks)
        ...         return self.stat(name)
        ...
        ...     def delete(self, name):
        ...         self.read(name)
        ...         del self.logs[name]
        >>> store = DictStore()
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

        Example:
            >>> store.check("runs")  # a folder that will do
        """
        return  # a store that says nothing is asked by the first write

    @abstractmethod
    def create(self, name: str) -> LogSink:
        """A new, empty log ``name``; whoever holds its sink is alive (see ``live``).

        Raises:
            FileExistsError: the name is taken.
            OSError: it is no name of a log (empty, or that of a folder).

        Example:
            >>> sink = store.create("runs/a.eval")
            >>> store.create("runs/a.eval")
            Traceback (most recent call last):
                ...
            FileExistsError: runs/a.eval
        """

    @abstractmethod
    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes ``[start, end)`` of the log ``name``: to its end when ``None``, fewer when the log is shorter.

        Example:
            >>> sink.commit(b"samples", b"|directory")
            >>> store.read("runs/a.eval")
            b'samples|directory'
            >>> store.read("runs/a.eval", 7, 11)
            b'|dir'
        """

    @abstractmethod
    def stat(self, name: str) -> Stat:
        """Size, etag and time of change of the log ``name``.

        Example:
            >>> store.stat("runs/a.eval").size
            17
        """

    @abstractmethod
    def list(self, prefix: str, *, recursive: bool = True) -> Iterator[tuple[str, Stat]]:
        """The files below the folder ``prefix``, in no particular order; nothing when there is no such folder.

        Args:
            prefix: the folder; empty for all of the store.
            recursive: whether folders below it count, too.

        Example:
            >>> [(name, stat.size) for name, stat in store.list("runs")]
            [('runs/a.eval', 17)]
            >>> list(store.list("elsewhere"))
            []
        """

    @abstractmethod
    def replace(self, name: str, chunks: Iterable[bytes], if_match: str | None = None) -> Stat:
        """Write the log as a whole; readers see the old content or the new, never a mixture.

        Args:
            name: created when it does not exist.
            chunks: the new content.
            if_match: the etag that the log must have.

        Raises:
            FileExistsError: the log has another etag: somebody else has changed it.

        Example:
            >>> seen = store.stat("runs/a.eval").etag
            >>> store.replace("runs/a.eval", [b"edi", b"ted"], if_match=seen).size
            6
            >>> store.replace("runs/a.eval", [b"edited, too"], if_match=seen)
            Traceback (most recent call last):
                ...
            FileExistsError: somebody else has changed runs/a.eval
        """

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove the log ``name``.

        Example:
            >>> store.delete("runs/a.eval")
            >>> store.read("runs/a.eval")
            Traceback (most recent call last):
                ...
            FileNotFoundError: runs/a.eval
        """

    def live(self, name: str) -> bool:
        """Whether a process is writing or holding the log ``name`` now, as far as the store can tell.

        Example:
            >>> store.live("runs/a.eval")
            False
        """
        return False

    def hold(self, name: str) -> LogLease:
        """Claim the existing log ``name`` for a resume or an edit; of all who try at once, one succeeds.

        A store that overrides nothing refuses a log that is ``live`` and can't keep two holders apart.

        Raises:
            LogBusyError: a process is writing it, or holds it.
            FileNotFoundError: there is no such log.

        Example:
            >>> stat = store.replace("runs/b.eval", [b"a finished log"])
            >>> with store.hold("runs/b.eval"):
            ...     stat = store.replace("runs/b.eval", [b"a log with a tag"], if_match=stat.etag)
        """
        if self.live(name):
            raise LogBusyError(name)
        self.stat(name)
        return LogLease()

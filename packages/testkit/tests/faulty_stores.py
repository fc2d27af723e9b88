"""Log stores with one fault each: run by ``test_store_suite.py`` as a module of tests of its own."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from zlib import crc32

import pytest

from proctor.contracts import LogBusyError, LogLease, LogSink, LogStore, Stat
from proctor.log import FileStore
from proctor_testkit import LogStoreSuite

MEMORY = """
append check close create create_race delete delete_live durable empty_commit etag hold hold_missing hold_race
hold_replace large list list_live list_nothing list_siblings live live_writer many missing names no_name no_space read
reading_while_written replace replace__in_place replace_conflict replace_fails replace_race stat torn
"""


class Sink(LogSink):
    def __init__(self, store: Store, name: str) -> None:
        self.store, self.name, self.body, self.content, self.closed = store, name, b"", b"", False

    def commit(self, segment: bytes, directory: bytes | bytearray) -> None:
        fault, full = self.store.fault, self.store.full
        if full and fault != "no_space":
            raise OSError(errno.ENOSPC, "no space")
        if fault == "append" and len(segment) == 768:
            segment = segment.replace(b"\n", b"\r\n")
        if fault == "large":
            segment = segment[: 32 << 20]
        self.body += segment
        if full:
            raise OSError(errno.ENOSPC, "no space")
        old, self.content = self.content, self.body + bytes(directory)
        if fault == "empty_commit" and not segment:
            self.content += old[len(self.content) :]
        if fault == "reading_while_written" and self.name in self.store.sinks:
            self.store.put(self.name, b"")
            time.sleep(0.002)
        if self.store.sinks.get(self.name) is self or fault == "delete_live":
            self.store.put(self.name, self.content)

    def close(self) -> None:
        if self.closed and self.store.fault == "close":
            raise ValueError("closed twice")
        self.closed = True
        if self.store.sinks.get(self.name) is self:
            del self.store.sinks[self.name]


class Lease(LogLease):
    def __init__(self, store: Store, name: str) -> None:
        self.store, self.name, self.closed = store, name, False

    def close(self) -> None:
        if self.closed and self.store.fault == "hold":
            raise ValueError("closed twice")
        self.closed = True
        if self.store.leases.get(self.name) is self:
            del self.store.leases[self.name]


class Store(LogStore):
    """In memory."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.files: dict[str, bytes] = {}
        self.versions = 0
        self.version: dict[str, int] = {}
        self.sinks: dict[str, Sink] = {}
        self.leases: dict[str, Lease] = {}
        self.were_held: set[str] = set()
        self.full = False
        self.lock = threading.Lock()

    def put(self, name: str, content: bytes) -> None:
        self.versions += 1
        self.version[name], self.files[name] = self.versions, content

    def check(self, folder: str, *, dry: bool = False) -> None:
        if self.fault == "check" and not dry:
            self.put(f"{folder}/probe", b"")

    def create(self, name: str) -> LogSink:
        if not name or (name.endswith("/") and self.fault != "no_name"):
            raise IsADirectoryError(name)
        if self.fault == "names":
            name = unquote(name)
        if self.fault == "create_race":
            taken = name in self.files
            time.sleep(0.01)
            if taken:
                raise FileExistsError(name)
        with self.lock:
            if name in self.files and self.fault != "create_race":
                if self.fault != "create" or self.files[name] != b"first":
                    raise FileExistsError(name)
            else:
                self.put(name, b"")
            sink = self.sinks[name] = Sink(self, name)
        return sink

    def _get(self, name: str) -> bytes:
        if name not in self.files:
            raise FileNotFoundError(name)
        return self.files[name]

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        if self.fault == "read" and (start, end) == (2, 5):
            end = 6
        if self.fault == "durable" and name in self.sinks:
            return self.sinks[name].body[start:end]
        return self._get(name)[start:end]

    def stat(self, name: str) -> Stat:
        if self.fault == "missing" and name not in self.files:
            raise KeyError(name)
        size = len(self._get(name))
        etag = f"{size}" if self.fault == "etag" else f"{self.version[name]}"
        return Stat(size, etag, 0 if self.fault == "stat" else time.time())

    def list(self, prefix: str, *, recursive: bool = True) -> Iterator[tuple[str, Stat]]:
        if self.fault == "list_nothing" and prefix.endswith("nowhere"):
            raise FileNotFoundError(prefix)
        inside = prefix if self.fault == "list_siblings" else prefix.rstrip("/") + "/"
        for number, name in enumerate(sorted(self.files)):
            if self.fault == "many" and number >= 1000:
                return
            flat = "/" not in name[len(inside) :].strip("/")
            if name.startswith(inside) and (recursive or flat or self.fault == "list"):
                yield name, self.stat(name)
                if self.fault == "list_live" and name in self.sinks:
                    yield f"{name}.lease", Stat(1, "", 1.0)

    def replace(self, name: str, chunks: Iterable[bytes], if_match: str | None = None) -> Stat:
        new = b""
        for chunk in chunks:
            new += chunk
            if self.fault == "replace_fails" and new == b"half":
                self.put(name, new)
            if self.fault == "replace__in_place" and new == b"sho":
                self.put(name, new + self.files[name][3:])
        with self.lock:
            old = self.files.get(name, b"")
            matches = if_match is None or self.stat(name).etag == if_match
        if self.fault == "replace_race":
            time.sleep(0.01)
        with self.lock:
            if self.fault != "replace_race":
                matches = if_match is None or self.stat(name).etag == if_match
            if not matches and (self.fault != "replace_conflict" or not old.startswith(b"somebody")):
                raise FileExistsError(name)
            if self.fault == "replace":
                new += old[len(new) :]
            self.put(name, new)
            if self.fault == "hold_replace":
                self.leases.pop(name, None)
            return self.stat(name)

    def delete(self, name: str) -> None:
        content = self._get(name)
        if self.fault != "delete" or content != b"one":
            del self.files[name]
        self.sinks.pop(name, None)

    def live(self, name: str) -> bool:
        if self.fault == "live" and name not in self.sinks and name not in self.leases:
            return name not in self.were_held
        return (name in self.sinks and self.fault != "live_writer") or name in self.leases

    def hold(self, name: str) -> LogLease:
        if name not in self.files and self.fault != "hold_missing":
            raise FileNotFoundError(name)
        if self.fault == "hold_race":
            taken = name in self.leases
            time.sleep(0.01)
        with self.lock:
            if self.fault != "hold_race":
                taken = name in self.leases
            self.were_held.add(name)
            if taken or name in self.sinks:
                raise LogBusyError(name)
            lease = self.leases[name] = Lease(self, name)
        return lease


class MemoryChecks(LogStoreSuite):
    capabilities = frozenset({"leases"})
    fault = "none"

    @pytest.fixture
    def store(self) -> Store:
        return Store(self.fault)

    @pytest.fixture
    def torn(self) -> Callable[..., None]:
        def torn(store: Store, name: str, sink: Sink, segment: bytes, directory: bytes, size: int) -> None:
            old, start, write = store.files[name], len(sink.body), (segment + directory)[:size]
            if store.fault == "torn":  # written anew from its beginning
                store.put(name, (sink.body + segment + directory)[:size])
            else:
                store.put(name, old[:start] + write + old[start + size :])
            sink.close()

        return torn

    @pytest.fixture
    def failing(self) -> Callable[[Store], AbstractContextManager[None]]:
        @contextmanager
        def failing(store: Store) -> Iterator[None]:
            store.full = True
            yield
            store.full = False

        return failing


class FileChecks(LogStoreSuite):
    capabilities = frozenset({"leases", "processes", "dying_leases"})
    many = 10  # the other checks are not about files

    @pytest.fixture
    def name(self, tmp_path: Path) -> str:
        return f"{tmp_path}/logs/a.eval"

    @pytest.fixture
    def store(self, opener: Callable[[], LogStore]) -> LogStore:
        return opener()


class Forgetful(FileStore):
    """Knows which names it has given, and not those of other processes."""

    def __init__(self) -> None:
        self.given: set[str] = set()
        self.lock = threading.Lock()

    def create(self, name: str) -> LogSink:
        with self.lock:
            if name in self.given or (Path(name).exists() and self.given):
                raise FileExistsError(name)
            if name and not name.endswith("/"):
                Path(name).unlink(missing_ok=True)
            sink = super().create(name)
            self.given.add(name)
            return sink

    def replace(self, name: str, chunks: Iterable[bytes], if_match: str | None = None) -> Stat:
        self.given.add(name)
        return super().replace(name, chunks, if_match)

    def delete(self, name: str) -> None:
        super().delete(name)
        self.given.discard(name)


class Solitary(FileStore):
    """Knows who holds a log, and not those of other processes."""

    holders: set[str] = set()
    guard = threading.Lock()

    def live(self, name: str) -> bool:
        return name in self.holders or super().live(name)

    def hold(self, name: str) -> LogLease:
        self.stat(name)
        with self.guard:
            if self.live(name):
                raise LogBusyError(name)
            self.holders.add(name)
        lease = LogLease()
        lease.close = lambda: self.holders.discard(name)  # type: ignore[method-assign]
        return lease


class Marking(FileStore):
    """Marks a log as taken with a file beside the folder, which nobody removes when its writer dies."""

    def create(self, name: str) -> LogSink:
        sink: Any = super().create(name)
        mark, close = self._mark(name), sink.close
        mark.touch()

        def both() -> None:
            close()
            mark.unlink(missing_ok=True)

        sink.close = both
        return sink

    def live(self, name: str) -> bool:
        return self._mark(name).exists() or super().live(name)

    def _mark(self, name: str) -> Path:
        return Path(name).parent.parent / f"taken-{crc32(name.encode()):x}"


def _named(name: str, base: type[LogStoreSuite], **fields: Any) -> None:
    globals()[f"Test_{name}"] = type(f"Test_{name}", (base,), {"__module__": __name__, **fields})


def _opener(store: type[LogStore]) -> Any:
    return pytest.fixture(lambda self: store)


_all = frozenset({"leases", "torn", "failing"})
_named("none", MemoryChecks, capabilities=_all)
for _fault in MEMORY.split():
    _more = {"capabilities": _all} if _fault in ("torn", "no_space") else {}  # a second for each store otherwise
    _named(f"store__{_fault}", MemoryChecks, fault=_fault, **_more)
_named("store__create_processes", FileChecks, opener=_opener(Forgetful))
_named("store__hold_processes", FileChecks, opener=_opener(Solitary))
_named("store__lease_dies", FileChecks, opener=_opener(Marking))
del MemoryChecks, FileChecks

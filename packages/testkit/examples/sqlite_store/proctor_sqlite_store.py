"""Logs in an SQLite database: a whole log store in one file, as an example of the contract.

``proctor eval task.py --plugin proctor_sqlite_store.py --log-dir sqlite:///path/runs.sqlite/folder`` uses it as it is;
installed as a package it needs no ``--plugin``.
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from proctor.contracts import LogBusyError, LogLease, LogSink, LogStore, LogStoreProvider, Stat, UsageError
from proctor.hookspecs import hookimpl

__all__ = ["SqliteStore", "proctor_log_stores"]

_SUFFIXES = (".sqlite", ".db")
_WAIT = 60.0  # seconds that a writer waits for another
_SCHEMA = """
CREATE TABLE IF NOT EXISTS logs (name TEXT PRIMARY KEY, directory BLOB, size INTEGER, etag TEXT, mtime REAL) STRICT;
CREATE TABLE IF NOT EXISTS segments (name TEXT, start INTEGER, data BLOB, PRIMARY KEY (name, start)) STRICT;
CREATE TABLE IF NOT EXISTS holders (name TEXT PRIMARY KEY, token TEXT, pid INTEGER, since REAL) STRICT;
"""


class SqliteStore(LogStore):
    """A name is the path of a database and, behind it, that of the log in it: ``/path/runs.sqlite/folder/a.eval``."""

    def check(self, folder: str, *, dry: bool = False) -> None:
        """Open the database for writing; with ``dry``, look at the permissions of its folder."""
        path, _ = _split(folder)
        if dry:
            if not os.access(path if os.path.exists(path) else os.path.dirname(path) or ".", os.W_OK):
                raise UsageError(f"{path} cannot be written: name another database with --log-dir sqlite:///PATH")
            return
        try:
            with _writing(path):
                pass
        except OSError as error:
            raise UsageError(f"no log can be written to {path}: {error}. --log-dir names another place") from error

    def create(self, name: str) -> LogSink:
        """A row that nobody else has made."""
        path, key = _split(name)
        if not key or key.endswith("/"):
            raise IsADirectoryError(errno.EISDIR, "it names a folder, not a log", name)
        token = secrets.token_hex(8)
        with _writing(path) as db:
            if db.execute("SELECT 1 FROM logs WHERE name = ?", (key,)).fetchone():
                raise FileExistsError(errno.EEXIST, "there is a log of that name", name)
            db.execute("INSERT INTO logs VALUES (?, x'', 0, ?, ?)", (key, token, time.time()))
            db.execute("INSERT OR REPLACE INTO holders VALUES (?, ?, ?, ?)", (key, token, os.getpid(), time.time()))
        return _Sink(path, key, token)

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes ``[start, end)``: only the segments that hold them are read."""
        path, key = _split(name)
        with _reading(path, name) as db:
            directory, size = _row(db, key, name, "directory, size")
            end = size if end is None else min(end, size)
            rows = db.execute(
                "SELECT start, substr(data, max(0, ? - start) + 1, ? - max(start, ?)) FROM segments "
                "WHERE name = ? AND start < ? AND start + length(data) > ? ORDER BY start",
                (start, end, start, key, end, start),
            ).fetchall()
        found = b"".join(data for _, data in rows)
        behind = size - len(directory)  # where the directory stands
        if end > behind and end > start:
            found += directory[max(0, start - behind) : end - behind]
        return found

    def stat(self, name: str) -> Stat:
        """Size, etag and time of change."""
        path, key = _split(name)
        with _reading(path, name) as db:
            return Stat(*_row(db, key, name, "size, etag, mtime"))

    def list(self, prefix: str, *, recursive: bool = True) -> Iterator[tuple[str, Stat]]:
        """The logs whose names begin with the folder."""
        path, key = _split(prefix)
        inside = f"{key.rstrip('/')}/" if key.strip("/") else ""
        try:
            with _reading(path, prefix) as db:
                rows = db.execute(
                    "SELECT name, size, etag, mtime FROM logs WHERE substr(name, 1, ?) = ?", (len(inside), inside)
                ).fetchall()
        except FileNotFoundError:
            return
        for name, size, etag, mtime in rows:
            if recursive or "/" not in name[len(inside) :]:
                yield f"{path}/{name}", Stat(size, etag, mtime)

    def replace(self, name: str, chunks: Iterable[bytes], if_match: str | None = None) -> Stat:
        """One transaction: what is in the way of it takes it back as a whole."""
        path, key = _split(name)
        data, etag = b"".join(chunks), secrets.token_hex(8)
        with _writing(path) as db:
            found = db.execute("SELECT etag FROM logs WHERE name = ?", (key,)).fetchone()
            if if_match is not None and (found is None or found[0] != if_match):
                raise FileExistsError(errno.EEXIST, "somebody else has changed the log; read it again", name)
            stat = Stat(len(data), etag, time.time())
            db.execute("DELETE FROM segments WHERE name = ?", (key,))
            db.execute("INSERT INTO segments VALUES (?, 0, ?)", (key, data))
            db.execute("INSERT OR REPLACE INTO logs VALUES (?, x'', ?, ?, ?)", (key, stat.size, etag, stat.mtime))
        return stat

    def delete(self, name: str) -> None:
        """Remove the rows."""
        path, key = _split(name)
        self.stat(name)
        with _writing(path) as db:
            for table in ("logs", "segments", "holders"):
                db.execute(f"DELETE FROM {table} WHERE name = ?", (key,))

    def live(self, name: str) -> bool:
        """Whether a process that is there has the log."""
        path, key = _split(name)
        with _reading(path, name) as db:
            _row(db, key, name, "1")
            return _holder(db, key) is not None

    def hold(self, name: str) -> LogLease:
        """Write down who has the log; a process that has died has nothing."""
        path, key = _split(name)
        self.stat(name)
        token = secrets.token_hex(8)
        with _writing(path) as db:
            _row(db, key, name, "1")
            if (holder := _holder(db, key)) is not None:
                raise LogBusyError(name, pid=holder[0], since=holder[1])
            db.execute("INSERT OR REPLACE INTO holders VALUES (?, ?, ?, ?)", (key, token, os.getpid(), time.time()))
        return _Lease(path, key, token)


class _Sink(LogSink):
    def __init__(self, path: str, key: str, token: str) -> None:
        self._path, self._key, self._token, self._end = path, key, token, 0

    def commit(self, segment: bytes, directory: bytes | bytearray) -> None:
        end = self._end + len(segment)
        with _writing(self._path) as db:
            if db.execute("SELECT 1 FROM holders WHERE (name, token) = (?, ?)", (self._key, self._token)).fetchone():
                if segment:
                    db.execute("INSERT INTO segments VALUES (?, ?, ?)", (self._key, self._end, segment))
                db.execute(
                    "UPDATE logs SET (directory, size, etag, mtime) = (?, ?, ?, ?) WHERE name = ?",
                    (bytes(directory), end + len(directory), secrets.token_hex(8), time.time(), self._key),
                )
            else:
                raise FileNotFoundError(errno.ENOENT, "the log was deleted", self._key)
        self._end = end

    def close(self) -> None:
        _let_go(self._path, self._key, self._token)


class _Lease(LogLease):
    def __init__(self, path: str, key: str, token: str) -> None:
        self._path, self._key, self._token = path, key, token

    def close(self) -> None:
        _let_go(self._path, self._key, self._token)


def _let_go(path: str, key: str, token: str) -> None:
    with _writing(path) as db:
        db.execute("DELETE FROM holders WHERE (name, token) = (?, ?)", (key, token))


def _holder(db: sqlite3.Connection, key: str) -> tuple[int, float] | None:
    """Process and time of who has a log, if that process is there."""
    row: tuple[int, float] | None = db.execute("SELECT pid, since FROM holders WHERE name = ?", (key,)).fetchone()
    if row is None:
        return None
    try:
        os.kill(row[0], 0)
    except ProcessLookupError:
        return None
    except PermissionError:  # it is another user's
        pass
    return row


def _row(db: sqlite3.Connection, key: str, name: str, columns: str) -> tuple[object, ...]:
    found: tuple[object, ...] | None = db.execute(f"SELECT {columns} FROM logs WHERE name = ?", (key,)).fetchone()
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return found


def _split(name: str) -> tuple[str, str]:
    """The path of the database and the name of the log in it."""
    parts = name.split("/")
    for place, part in enumerate(parts):
        if part.endswith(_SUFFIXES):
            return "/".join(parts[: place + 1]), "/".join(parts[place + 1 :])
    raise UsageError(f"sqlite://{name} names no database: a part of it must end in {' or '.join(_SUFFIXES)}")


@contextmanager
def _reading(path: str, name: str) -> Iterator[sqlite3.Connection]:
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    with _transaction(path, "BEGIN") as db:
        yield db


@contextmanager
def _writing(path: str) -> Iterator[sqlite3.Connection]:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with _transaction(path, "BEGIN IMMEDIATE") as db:
        yield db


@contextmanager
def _transaction(path: str, begin: str) -> Iterator[sqlite3.Connection]:
    """A transaction on a connection of its own, so that any thread may come."""
    try:
        db = sqlite3.connect(path, timeout=_WAIT, isolation_level=None)
        try:
            db.execute("PRAGMA synchronous = FULL")
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'holders'").fetchone():
                db.executescript(_SCHEMA)
            db.execute(begin)
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        finally:
            db.close()
    except sqlite3.Error as error:
        full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        raise OSError(errno.ENOSPC if full else errno.EIO, f"{path}: {error}") from error


@hookimpl
def proctor_log_stores() -> Sequence[LogStoreProvider]:
    """Logs in SQLite databases."""
    return [LogStoreProvider("sqlite", SqliteStore, "SQLite databases: sqlite:///path/runs.sqlite/folder")]

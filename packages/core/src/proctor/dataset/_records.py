"""Files of records: one pass that yields each with its place, and reading one again by its place."""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from proctor.contracts import UsageError
from proctor.dataset._fields import Record

_CHUNK = 1 << 20


class Place(NamedTuple):
    """Where a record stands: its bytes ``[start, end)``, and its first line (from 1)."""

    start: int
    end: int
    line: int


class RecordFile(ABC):
    """A file of records, kept open: a file that is replaced meanwhile does not matter, one that is changed is an error.

    Args:
        path: an absolute path.
        encoding: of its text; UTF-8 with or without a byte order mark for ``utf-8``.
    """

    def __init__(self, path: str, encoding: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError as error:
            raise UsageError(f"the dataset {path} can't be read: {error.strerror}. Check the path.") from None
        weakref.finalize(self, os.close, self._fd)
        if os.path.isdir(path):
            raise UsageError(f"the dataset {path} is a directory, not a file")
        self.encoding = self._make_seekable(encoding)
        self._state = self._signature()

    def _signature(self) -> tuple[int, int]:
        status = os.fstat(self._fd)
        return status.st_size, status.st_mtime_ns

    def _make_seekable(self, encoding: str) -> str:
        """The encoding to read lines with: of the file, or of a copy in UTF-8 if its lines do not end in ``\\n``."""
        try:
            name = codecs.lookup(encoding).name
        except LookupError:
            raise UsageError(f"{self.path}: there is no text encoding {encoding!r}; try utf-8") from None
        head = self.read_bytes(0, 1 << 16)
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and name.startswith("utf-8"):
            name = "utf-16"
        # A byte order mark of UTF-8 is skipped, whether or not the encoding's name asks for it.
        name = "utf-8" if name == "utf-8-sig" else name
        bytewise = "\n".encode(name) == b"\n"
        old_mac = bytewise and b"\r" in head and b"\n" not in head
        if bytewise and not old_mac:
            return name
        self._fd = self._convert(name, None if old_mac else "")
        weakref.finalize(self, os.close, self._fd)
        return "utf-8"

    def _convert(self, encoding: str, newline: str | None) -> int:
        with tempfile.TemporaryFile() as converted, open(self.path, encoding=encoding, newline=newline) as text:
            try:
                while chunk := text.read(_CHUNK):
                    converted.write(chunk.encode("utf-8", "surrogatepass"))
            except UnicodeDecodeError as error:
                raise UsageError(
                    f"{self.path}: this is not {encoding} text ({error.reason}); give encoding=..."
                ) from None
            converted.flush()
            return os.dup(converted.fileno())

    def read_bytes(self, start: int, size: int) -> bytes:
        """Up to ``size`` bytes from ``start``."""
        with self._lock:
            os.lseek(self._fd, start, os.SEEK_SET)
            parts = []
            while size > 0 and (part := os.read(self._fd, size)):
                parts.append(part)
                size -= len(part)
        return b"".join(parts)

    def _lines(self) -> Iterator[bytes]:
        """The lines with their ends, without a byte order mark (whose three bytes ``skipped`` counts)."""
        yield from self.open()

    def open(self) -> io.BufferedReader:
        """The bytes after a byte order mark, from the beginning, independent of other readers of this file."""
        return io.BufferedReader(_Bytes(self, self.skipped), _CHUNK)

    @property
    def skipped(self) -> int:
        """How many bytes a byte order mark takes at the start."""
        return 3 if self.encoding == "utf-8" and self.read_bytes(0, 3) == codecs.BOM_UTF8 else 0

    def decode(self, data: bytes, line: int) -> str:
        """``data`` as text.

        Raises:
            UsageError: naming the line, if it is not text of this encoding.
        """
        try:
            return data.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise self.error(
                line, f"this is not {self.encoding} text (byte {error.object[error.start]:#04x}); give encoding=..."
            ) from None

    def error(self, line: int, message: str) -> UsageError:
        """An error at a line of this file."""
        return UsageError(f"{self.path}, line {line}: {message}")

    def read(self, place: Place) -> Record:
        """The record at ``place``.

        Raises:
            UsageError: if the file was changed since its records were counted.
        """
        if self._signature() != self._state:
            raise UsageError(f"the dataset {self.path} was changed while it was being read. Run again.")
        return self.parse(self.read_bytes(place.start, place.end - place.start), place.line)

    @abstractmethod
    def scan(self) -> Iterator[tuple[Place, Record]]:
        """All records, in order, each with its place."""

    @abstractmethod
    def parse(self, data: bytes, line: int) -> Record:
        """The record in ``data``, which begins at ``line``."""


class _Bytes(io.RawIOBase):
    # A reader with a position of its own: duplicated descriptors would share one with `RecordFile.read`.
    def __init__(self, file: RecordFile, start: int) -> None:
        self._file = file
        self._at = start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read_bytes(self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class CsvFile(RecordFile):
    """Rows of a CSV file; the first names the fields unless ``fieldnames`` does."""

    def __init__(
        self,
        path: str,
        encoding: str = "utf-8",
        dialect: str = "unix",
        fieldnames: Sequence[str] | None = None,
        delimiter: str | None = None,
    ) -> None:
        if dialect not in csv.list_dialects():
            raise UsageError(f"there is no CSV dialect {dialect!r}; there are {', '.join(csv.list_dialects())}")
        super().__init__(path, encoding)
        self._format: dict[str, Any] = {"dialect": dialect}
        if delimiter is not None:
            self._format["delimiter"] = delimiter
        self._fieldnames = list(fieldnames) if fieldnames is not None else None

    def scan(self) -> Iterator[tuple[Place, Record]]:
        end = self.skipped
        lines_read = 0

        def lines() -> Iterator[str]:
            nonlocal end, lines_read
            for data in self._lines():
                end += len(data)
                lines_read += 1
                yield self.decode(data, lines_read)

        # A cell may be longer than the 128 KiB that the csv module allows by itself.
        csv.field_size_limit((1 << 31) - 1)
        rows = csv.reader(lines(), **self._format)
        while True:
            start, first_line = end, lines_read + 1
            try:
                row = next(rows, None)
            except csv.Error as error:
                raise self.error(first_line, f"bad CSV: {error}") from None
            if row is None:
                return
            if not row:
                continue
            if self._fieldnames is None:
                self._fieldnames = self._header(row, first_line)
                continue
            yield Place(start, end, first_line), self._record(row, first_line)

    def _header(self, row: list[str], line: int) -> list[str]:
        twice = sorted({name for name in row if row.count(name) > 1})
        if twice:
            raise self.error(line, f"the header names {', '.join(map(repr, twice))} twice. Rename the columns.")
        return row

    def _record(self, row: list[str], line: int) -> Record:
        names = self._fieldnames or []
        if len(row) != len(names):
            extra = f" Unexpected: {row[len(names) :]!r}." if len(row) > len(names) else ""
            lacking = f" No value for: {', '.join(map(repr, names[len(row) :]))}." if len(row) < len(names) else ""
            raise self.error(
                line,
                f"the row has {len(row)} field{'' if len(row) == 1 else 's'}, the header has {len(names)}."
                f"{extra}{lacking} Quote fields that contain the delimiter or a line break.",
            )
        return dict(zip(names, row, strict=True))

    def parse(self, data: bytes, line: int) -> Record:
        # Rows are given line by line, since a quoted cell may hold line breaks.
        text = io.StringIO(self.decode(data, line), newline="")
        for row in csv.reader(text, **self._format):
            if row:
                return self._record(row, line)
        raise self.error(line, "the row is empty")


class JsonLinesFile(RecordFile):
    """One JSON object a line; empty lines are skipped."""

    def scan(self) -> Iterator[tuple[Place, Record]]:
        start = self.skipped
        for line, data in enumerate(self._lines(), 1):
            end = start + len(data)
            if not data.isspace():
                yield Place(start, end, line), self.parse(data, line)
            start = end

    def parse(self, data: bytes, line: int) -> Record:
        try:
            record = json.loads(self.decode(data, line))
        except json.JSONDecodeError as error:
            raise self.error(line, f"bad JSON: {error.msg} (column {error.colno})") from None
        return self.checked(record, line)

    def checked(self, record: Any, line: int) -> Record:
        """``record`` if it is an object."""
        if not isinstance(record, dict):
            raise self.error(line, f"a record must be a JSON object, not {type(record).__name__} {str(record)[:40]!r}")
        return record


class JsonFile(JsonLinesFile):
    """A JSON array of objects, or objects one after the other; read in pieces, so its size does not matter."""

    def scan(self) -> Iterator[tuple[Place, Record]]:
        text = io.TextIOWrapper(self.open(), encoding=self.encoding, newline="")
        try:
            yield from _JsonScanner(self, text, self.skipped).records()
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{self.path}: this is not {self.encoding} text ({error.reason}); give encoding=..."
            ) from None


class _JsonScanner:
    """Finds one JSON value after the other in a text that is read in pieces, and where their bytes stand."""

    def __init__(self, file: JsonFile, text: io.TextIOWrapper, start: int) -> None:
        self._file = file
        self._text = text
        self._buffer = ""
        self._at = 0  # in the buffer
        self._byte = start
        self._line = 1
        self._ended = False
        self._decoder = json.JSONDecoder()

    def records(self) -> Iterator[tuple[Place, Record]]:
        array = self._peek() == "["
        if array:
            self._advance(self._at + 1)
        first = True
        while True:
            char = self._peek()
            if char == "" or (array and char == "]"):
                break
            if not first and array:
                if char != ",":
                    raise self._error(f"expected ',' or ']' between records, found {char!r}")
                self._advance(self._at + 1)
                self._peek()
            yield self._value()
            first = False
        if array:
            if char == "":
                raise self._error("the file ends within the array: is it cut off?")
            self._advance(self._at + 1)
            if self._peek() != "":
                raise self._error("there is text after the array")

    def _value(self) -> tuple[Place, Record]:
        start, line = self._byte, self._line
        wanted = _CHUNK
        while True:
            try:
                record, end = self._decoder.raw_decode(self._buffer, self._at)
                # A number or a word at the very end of the buffer may go on in the next piece; an object may not.
                break
            except json.JSONDecodeError as error:
                # Twice as much each time: a record of n bytes is tried log(n) times.
                if self._ended:
                    self._advance(min(error.pos, len(self._buffer)))
                    raise self._error(f"bad JSON: {error.msg}") from None
            self._fill(wanted)
            wanted *= 2
        self._advance(end)
        return Place(start, self._byte, line), self._file.checked(record, line)

    def _peek(self) -> str:
        """The next character that is no space, or ``""`` at the end."""
        while True:
            at = self._at
            while at < len(self._buffer) and self._buffer[at] in " \t\r\n":
                at += 1
            self._advance(at)
            if at < len(self._buffer):
                return self._buffer[at]
            if self._ended:
                return ""
            self._fill(_CHUNK)

    def _fill(self, size: int) -> None:
        piece = self._text.read(size)
        self._ended = not piece
        self._buffer = self._buffer[self._at :] + piece
        self._at = 0

    def _advance(self, to: int) -> None:
        passed = self._buffer[self._at : to]
        if passed:
            self._byte += len(passed) if passed.isascii() else len(passed.encode(self._file.encoding))
            self._line += passed.count("\n")
            self._at = to

    def _error(self, message: str) -> UsageError:
        return self._file.error(self._line, message)

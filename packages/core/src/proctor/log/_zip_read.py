"""Reading archives: the directory without the standard library's per-entry cost, and members of all methods in use."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from proctor.contracts import UsageError
from proctor.log._zip_format import (
    CENTRAL,
    CENTRAL_MAGIC,
    DEFLATE,
    END,
    END64,
    END64_LOCATOR,
    END64_LOCATOR_MAGIC,
    END64_MAGIC,
    END_MAGIC,
    LIMIT16,
    LIMIT32,
    LOCAL,
    LOCAL_MAGIC,
    STORED,
    ZSTD,
    Entry,
    decode_name,
    zip64_values,
)
from proctor.log._zstd import decompress, decompress_chunks, inflate

__all__ = ["BadLogError", "ZipReader", "keeping_end", "walk_members"]

_TAIL = 1 << 16  # bytes read first from the end: most directories, and every comment, fit
_SLACK = 64  # bytes read with a member beyond the name's length: extra fields of its local header
_ENCRYPTED, _DESCRIPTOR = 1, 8
_BLOCK = 4 << 20  # bytes after which neighbours are no longer read together
_GAP = 1 << 16  # bytes between two members that are read though nobody wants them

ReadRange = Callable[[int, int], bytes]


class BadLogError(UsageError):
    """These bytes are not a log, or not a whole one; the message says what is wrong with them."""


class ZipReader:
    """The members of an archive of ``size`` bytes that ``read(start, end)`` gives bytes of.

    Where the directory is damaged or missing (a write was cut), ``salvage`` has the members found by their own
    headers, and ``torn`` is true.

    Raises:
        BadLogError: if it is no archive, or one without a whole directory and not to be salvaged.
    """

    def __init__(self, read: ReadRange, size: int, *, salvage: bool = True) -> None:
        self._read = read
        self._size = size
        self._directory = b""
        self.torn = False
        try:
            self._directory, self._count = _directory(read, size)
        except BadLogError:
            if not salvage or read(0, 4) != LOCAL_MAGIC:
                raise
            self._walk()

    def load(self) -> None:
        """Read all members at once, for who wants most of them.

        The directory that is known already stays: what it lists is not written any more, whatever a writer appends.
        """
        data = memoryview(self._read(0, self._size))
        self._read = lambda start, end: bytes(data[start:end])

    def _walk(self) -> list[Entry]:
        self.torn = True
        self.records = [entry for entry, _ in walk_members(self._read, self._size)]
        return self.records

    @cached_property
    def records(self) -> list[Entry]:
        """All records in order, replaced ones included."""
        try:
            return list(_records(self._directory, self._count))
        except BadLogError:
            return self._walk()

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """The members by name, oldest first; of one name the last record counts."""
        return {entry.name: entry for entry in self.records}

    def places(self) -> dict[str, int]:
        """Where the record of each member is, for ``at``: a third of the memory that ``entries`` takes."""
        if not self.torn:
            try:
                return dict(_places(self._directory, self._count))
            except BadLogError:
                self._walk()
        return {entry.name: place for place, entry in enumerate(self.records)}

    def at(self, place: int) -> Entry:
        """The entry whose record is at one of ``places``."""
        return self.records[place] if self.torn else _record(self._directory, place)[0]

    def find(self, name: str) -> Entry | None:
        """The entry of a member, without looking at all others (a log of 100,000 samples has as many)."""
        if self.torn or "entries" in self.__dict__ or not name.isascii():
            return self.entries.get(name)
        wanted, directory = name.encode(), self._directory
        place = directory.rfind(wanted)
        while place >= 0:
            entry = self._record_at(place - CENTRAL.size, name)
            if entry is not None:
                return entry
            place = directory.rfind(wanted, 0, place + len(wanted) - 1)
        return None

    def _record_at(self, start: int, name: str) -> Entry | None:
        """The record at ``start`` of the directory, if it is that of ``name``: its local header must say so, too."""
        if start < 0 or self._directory[start : start + 4] != CENTRAL_MAGIC:
            return None
        entry, _ = _record(self._directory, start)
        if entry.name != name:
            return None
        head = self._read(entry.offset, entry.offset + LOCAL.size + len(name))
        return entry if head[:4] == LOCAL_MAGIC and head[LOCAL.size :] == name.encode() else None

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    def read(self, name: str) -> bytes:
        """The content of a member.

        Raises:
            KeyError: there is none of that name.
            BadLogError: its data is damaged.
        """
        entry = self.find(name)
        if entry is None:
            raise KeyError(name)
        return self.content(entry)

    def stream(self, name: str) -> Iterator[bytes]:
        """The content of a member in pieces, made as they are asked for.

        Raises:
            KeyError: there is none of that name.
            BadLogError: its data is damaged.
        """
        entry = self.find(name)
        if entry is None:
            raise KeyError(name)
        data = self.raw(entry)
        if entry.method != ZSTD:
            yield unpack(entry, data)
            return
        try:
            yield from decompress_chunks(data)
        except ValueError as error:
            raise BadLogError(f"{entry.name!r}: {error}") from error

    def raw(self, entry: Entry) -> bytes:
        """The data of a member as it is stored."""
        return self._cut(entry, self._read(entry.offset, self._end(entry)), 0)

    def raw_many(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, bytes]]:
        """The data of several members, in the order in which they are stored; neighbours are read together.

        An object store gives a megabyte about as fast as a byte.
        """
        todo = sorted(entries, key=lambda entry: entry.offset)
        first = 0
        while first < len(todo):
            start, last, end = todo[first].offset, first, self._end(todo[first])
            while last + 1 < len(todo) and todo[last + 1].offset < end + _GAP and end < start + _BLOCK:
                last += 1
                end = max(end, self._end(todo[last]))
            block = self._read(start, end)
            for entry in todo[first : last + 1]:
                yield entry, self._cut(entry, block, entry.offset - start)
            first = last + 1

    def _end(self, entry: Entry) -> int:
        """A place that is behind the member as a rule: its local header may have fields that the directory has not."""
        name = len(entry.name) if entry.name.isascii() else len(entry.name.encode("utf-8", "replace"))
        return min(entry.offset + LOCAL.size + name + _SLACK + entry.compressed, self._size)

    def _cut(self, entry: Entry, block: bytes, at: int) -> bytes:
        """The member's data out of a block in which its header is at byte ``at``."""
        if len(block) < at + LOCAL.size or block[at : at + 4] != LOCAL_MAGIC:
            raise BadLogError(f"there is no member at byte {entry.offset}, where {entry.name!r} should be")
        head = LOCAL.unpack_from(block, at)
        start = LOCAL.size + head[9] + head[10]
        data = block[at + start : at + start + entry.compressed]
        if len(data) < entry.compressed:
            data = self._read(entry.offset + start, entry.offset + start + entry.compressed)
        if len(data) < entry.compressed:
            raise BadLogError(f"{entry.name!r} is cut")
        return data

    def content(self, entry: Entry) -> bytes:
        """The content of one record."""
        return unpack(entry, self.raw(entry))


def keeping_end(read: ReadRange, size: int) -> ReadRange:
    """``read`` for a file that does not change, asked once for what stands at its end."""
    first, known = size, b""

    def read_or_known(start: int, end: int) -> bytes:
        nonlocal first, known
        if start >= first:
            return known[start - first : end - first]
        data = read(start, end)
        if end >= size:
            first, known = start, data
        return data

    return read_or_known


def unpack(entry: Entry, data: bytes) -> bytes:
    """What ``data`` holds.

    Raises:
        BadLogError: if it is damaged, or packed in a way that logs do not use.
    """
    try:
        if entry.method == ZSTD:
            return decompress(data, entry.size)
        if entry.method == DEFLATE:
            return inflate(data)
    except ValueError as error:
        raise BadLogError(f"{entry.name!r}: {error}") from error
    if entry.method == STORED:
        return data
    raise BadLogError(f"{entry.name!r} is packed with method {entry.method}; logs use 0, 8 and 93")


def _directory(read: ReadRange, size: int) -> tuple[bytes, int]:
    """The directory, and how many records it has."""
    tail_start = max(0, size - _TAIL - END.size)
    tail = read(tail_start, size)
    end = tail.rfind(END_MAGIC)
    while end >= 0:
        found = _try_end(read, tail, tail_start, end)
        if found is not None:
            return found
        end = tail.rfind(END_MAGIC, 0, end)
    raise BadLogError("it is no ZIP archive, or its end is missing")


def _try_end(read: ReadRange, tail: bytes, tail_start: int, end: int) -> tuple[bytes, int] | None:
    """The directory that an end record at ``end`` of ``tail`` names, and its number of entries.

    ``None`` if it is none: the magic may stand in a member's data.
    """
    if end + END.size > len(tail):
        return None
    _, _, _, _, count, length, offset, _ = END.unpack_from(tail, end)
    place = tail_start + end  # where the directory ends
    locator = end - END64_LOCATOR.size
    if count == LIMIT16 or LIMIT32 in (length, offset):
        if locator < 0 or tail[locator : locator + 4] != END64_LOCATOR_MAGIC:
            return None
        wide = END64_LOCATOR.unpack_from(tail, locator)[2]
        record = read(wide, wide + END64.size)
        if len(record) < END64.size or record[:4] != END64_MAGIC:
            return None
        _, _, _, _, _, _, _, count, length, offset = END64.unpack(record)
        place = wide
    if offset + length != place:
        return None
    directory = (
        tail[offset - tail_start : offset - tail_start + length] if offset >= tail_start else read(offset, place)
    )
    if len(directory) != length or (count and directory[:4] != CENTRAL_MAGIC):
        return None
    if directory.count(CENTRAL_MAGIC) < count:  # another commit has overwritten a part of it since its end was read
        return None
    return directory, count


def _records(directory: bytes, count: int) -> Iterator[Entry]:
    place = 0
    for _ in range(count):
        if directory[place : place + 4] != CENTRAL_MAGIC or place + CENTRAL.size > len(directory):
            raise BadLogError("its directory is damaged")
        entry, place = _record(directory, place)
        yield entry


def _places(directory: bytes, count: int) -> Iterator[tuple[str, int]]:
    """Name and place of each record."""
    place, unpack_from, size = 0, CENTRAL.unpack_from, CENTRAL.size
    for _ in range(count):
        if directory[place : place + 4] != CENTRAL_MAGIC or place + size > len(directory):
            raise BadLogError("its directory is damaged")
        head = unpack_from(directory, place)
        start = place + size
        yield decode_name(directory[start : start + head[10]], head[3]), place
        place = start + head[10] + head[11] + head[12]


def _record(directory: bytes, place: int) -> tuple[Entry, int]:
    """The record at ``place``, and where the next one begins."""
    head = CENTRAL.unpack_from(directory, place)
    flags, method, crc, compressed, plain = head[3], head[4], head[7], head[8], head[9]
    name_length, extra_length, comment, offset = head[10], head[11], head[12], head[16]
    start = place + CENTRAL.size
    name = decode_name(directory[start : start + name_length], flags)
    if compressed == LIMIT32 or plain == LIMIT32 or offset == LIMIT32:
        wide = iter(zip64_values(directory[start + name_length : start + name_length + extra_length]))
        plain = next(wide, plain) if plain == LIMIT32 else plain
        compressed = next(wide, compressed) if compressed == LIMIT32 else compressed
        offset = next(wide, offset) if offset == LIMIT32 else offset
    return Entry(name, method, crc, compressed, plain, offset), start + name_length + extra_length + comment


def walk_members(read: ReadRange, size: int) -> Iterator[tuple[Entry, bytes]]:
    """The whole members that stand one behind the other from the beginning, with their data as stored.

    A member counts if its content has the length and CRC-32 of its header; the first that does not ends the walk.
    """
    place = 0
    while place + LOCAL.size <= size:
        block = read(place, place + LOCAL.size)
        if len(block) < LOCAL.size or block[:4] != LOCAL_MAGIC:
            return
        _, _, flags, method, _, _, crc, compressed, plain, name_length, extra_length = LOCAL.unpack(block)
        start = place + LOCAL.size + name_length + extra_length
        labels = read(place + LOCAL.size, start)
        if compressed == LIMIT32 or plain == LIMIT32:
            wide = zip64_values(labels[name_length:])
            if len(wide) >= 2:
                plain, compressed = wide[0], wide[1]
        name = decode_name(labels[:name_length], flags)
        if flags & _ENCRYPTED or flags & _DESCRIPTOR:
            return  # the size stands behind the data: no log is written so while it runs
        entry = Entry(name, method, crc, compressed, plain, place)
        data = read(start, start + compressed)
        try:
            content = unpack(entry, data) if len(data) == compressed else b""
        except BadLogError:
            return
        if len(content) != plain or zlib.crc32(content) != crc or len(data) != compressed:
            return
        yield entry, data
        place = start + compressed

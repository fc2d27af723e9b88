"""Reading archives: the directory without the standard library's per-entry cost, and members of all methods in use."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

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
from proctor.log._zstd import decompress, inflate

__all__ = ["BadLogError", "ZipReader", "walk_members"]

_TAIL = 1 << 16  # bytes read first from the end: most directories, and every comment, fit
_SLACK = 64  # bytes read with a member beyond the name's length: extra fields of its local header
_ENCRYPTED, _DESCRIPTOR = 1, 8

ReadRange = Callable[[int, int], bytes]


class BadLogError(UsageError):
    """These bytes are not a log, or not a whole one; the message says what is wrong with them."""


class ZipReader:
    """The members of an archive of ``size`` bytes that ``read(start, end)`` gives bytes of.

    Where the directory is damaged or missing (a write was cut), the members are found by their own headers, and
    ``torn`` is true.

    Raises:
        BadLogError: if it is no archive.
    """

    def __init__(self, read: ReadRange, size: int) -> None:
        self._read = read
        self._size = size
        self.torn = False
        try:
            entries = list(_directory(read, size))
        except BadLogError:
            if read(0, 4) != LOCAL_MAGIC:
                raise
            entries = [entry for entry, _ in walk_members(read, size)]
            self.torn = True
        self.records = entries
        """All records in order, replaced ones included."""
        self.entries = {entry.name: entry for entry in entries}  # the last one of a name counts
        """The members by name, oldest first."""

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def read(self, name: str) -> bytes:
        """The content of a member.

        Raises:
            KeyError: there is none of that name.
            BadLogError: its data is damaged.
        """
        return self.content(self.entries[name])

    def raw(self, entry: Entry) -> bytes:
        """The data of a member as it is stored."""
        guess = entry.offset + LOCAL.size + len(entry.name.encode("utf-8", "replace")) + _SLACK + entry.compressed
        block = self._read(entry.offset, min(guess, self._size))
        if len(block) < LOCAL.size or block[:4] != LOCAL_MAGIC:
            raise BadLogError(f"there is no member at byte {entry.offset}, where {entry.name!r} should be")
        head = LOCAL.unpack_from(block)
        start = LOCAL.size + head[9] + head[10]
        if start + entry.compressed > len(block):
            block = self._read(entry.offset, entry.offset + start + entry.compressed)
        data = block[start : start + entry.compressed]
        if len(data) < entry.compressed:
            raise BadLogError(f"{entry.name!r} is cut")
        return data

    def content(self, entry: Entry) -> bytes:
        """The content of one record."""
        return unpack(entry, self.raw(entry))


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


def _directory(read: ReadRange, size: int) -> Iterator[Entry]:
    tail_start = max(0, size - _TAIL - END.size)
    tail = read(tail_start, size)
    end = tail.rfind(END_MAGIC)
    while end >= 0:
        found = _try_end(read, tail, tail_start, end)
        if found is not None:
            yield from _records(*found)
            return
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
    return directory, count


def _records(directory: bytes, count: int) -> Iterator[Entry]:
    place, unpack_from, size = 0, CENTRAL.unpack_from, CENTRAL.size
    for _ in range(count):
        if directory[place : place + 4] != CENTRAL_MAGIC or place + size > len(directory):
            raise BadLogError("its directory is damaged")
        head = unpack_from(directory, place)
        flags, method, crc, compressed, plain = head[3], head[4], head[7], head[8], head[9]
        name_length, extra_length, comment, offset = head[10], head[11], head[12], head[16]
        start = place + size
        name = decode_name(directory[start : start + name_length], flags)
        if compressed == LIMIT32 or plain == LIMIT32 or offset == LIMIT32:
            wide = iter(zip64_values(directory[start + name_length : start + name_length + extra_length]))
            plain = next(wide, plain) if plain == LIMIT32 else plain
            compressed = next(wide, compressed) if compressed == LIMIT32 else compressed
            offset = next(wide, offset) if offset == LIMIT32 else offset
        yield Entry(name, method, crc, compressed, plain, offset)
        place = start + name_length + extra_length + comment


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

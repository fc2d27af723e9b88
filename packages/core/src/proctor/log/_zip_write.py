"""An archive that grows by appending: members in memory, and a directory that is kept up to date."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

from proctor.log._zip_format import central_record, dos_time, end_records, local_header
from proctor.log._zstd import compress_many, compress_stream

__all__ = ["ZipBuilder", "member_name"]

_NAME_LIMIT = 60_000  # of 65,535 that the format allows


def member_name(name: str) -> bytes:
    """``name`` as its header has it: lone surrogates as escapes, since readers refuse names that are not UTF-8.

    A name too long for the format keeps its beginning and gets a hash.
    """
    raw = name.encode("utf-8", "backslashreplace")
    if len(raw) <= _NAME_LIMIT:
        return raw
    from hashlib import blake2b

    head = raw[:1000].decode("utf-8", "ignore").encode()
    return head + b"~" + blake2b(raw, digest_size=16).hexdigest().encode() + b".json"


class ZipBuilder:
    """Makes segments (members, one behind the other) and the directory that belongs behind them."""

    __slots__ = ("_entries", "_offset", "directory")

    def __init__(self) -> None:
        self.directory = bytearray()
        self._entries = 0
        self._offset = 0

    @property
    def offset(self) -> int:
        """Where the next segment begins: the bytes of all members so far."""
        return self._offset

    def add(self, members: Sequence[tuple[str, bytes]]) -> list[bytes]:
        """The bytes of ``members`` (name, content), compressed; their records are in the directory on return."""
        return self.add_compressed(
            [
                (member_name(name), _crc(content), len(content), data)
                for (name, content), data in zip(
                    members, compress_many([content for _, content in members]), strict=True
                )
            ]
        )

    def add_compressed(self, members: Sequence[tuple[bytes, int, int, bytes]]) -> list[bytes]:
        """The bytes of members that are compressed already: (name, CRC-32, size, Zstandard data)."""
        stamp = dos_time()
        parts: list[bytes] = []
        for name, crc, size, data in members:
            header = local_header(name, crc, len(data), size, stamp)
            self.directory += central_record(name, crc, len(data), size, self._offset, stamp)
            self._offset += len(header) + len(data)
            self._entries += 1
            parts.append(header)
            parts.append(data)
        return parts

    def add_streamed(self, name: str, chunks: Iterable[bytes]) -> list[bytes]:
        """The bytes of one member whose content comes in pieces; only its compressed form is held."""
        stream, crc, size, parts = compress_stream(), 0, 0, []
        for chunk in chunks:
            crc, size = zlib.crc32(chunk, crc), size + len(chunk)
            parts.append(stream.compress(chunk))
        parts.append(stream.flush())
        return self.add_compressed([(member_name(name), crc, size, b"".join(parts))])

    def end(self) -> bytes:
        """The end record for the directory as it is now."""
        return end_records(self._entries, len(self.directory), self._offset)


def _crc(content: bytes) -> int:
    # In pieces below the size from which zlib lets go of the interpreter lock (5 KiB): taking it back costs up to 5 ms
    # when the event loop is busy, many times the work. Big members are worth it.
    if len(content) > 200_000:
        return zlib.crc32(content)
    view, crc = memoryview(content), 0
    for start in range(0, len(content), 5000):
        crc = zlib.crc32(view[start : start + 5000], crc)
    return crc

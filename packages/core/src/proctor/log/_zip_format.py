"""The bytes of a ZIP archive, as far as ``.eval`` logs use them (APPNOTE.TXT 6.3.9, sections 4.3 and 4.5.3)."""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass

__all__ = [
    "CENTRAL",
    "CENTRAL_MAGIC",
    "DEFLATE",
    "END",
    "END64",
    "END64_LOCATOR",
    "END64_LOCATOR_MAGIC",
    "END64_MAGIC",
    "END_MAGIC",
    "LIMIT16",
    "LIMIT32",
    "LOCAL",
    "LOCAL_MAGIC",
    "STORED",
    "ZSTD",
    "Entry",
    "central_record",
    "decode_name",
    "dos_time",
    "end_records",
    "local_header",
    "zip64_values",
]

STORED, DEFLATE, ZSTD = 0, 8, 93

LOCAL_MAGIC = b"PK\x03\x04"
CENTRAL_MAGIC = b"PK\x01\x02"
END_MAGIC = b"PK\x05\x06"
END64_MAGIC = b"PK\x06\x06"
END64_LOCATOR_MAGIC = b"PK\x06\x07"

# magic, version, flags, method, time, date, crc, compressed size, size, name length, extra length
LOCAL = struct.Struct("<4s5H3I2H")
# magic, made by, version, flags, method, time, date, crc, compressed size, size, name, extra and comment length, disk,
# internal attributes, external attributes, offset of the local header
CENTRAL = struct.Struct("<4s6H3I5H2I")
# magic, disk, disk of the directory, entries on the disk, entries, size and offset of the directory, comment length
END = struct.Struct("<4s4H2IH")
# magic, size of the rest, made by, version, disk, disk of the directory, entries on the disk, entries, size, offset
END64 = struct.Struct("<4sQ2H2I4Q")
END64_LOCATOR = struct.Struct("<4sIQI")

LIMIT16, LIMIT32 = 0xFFFF, 0xFFFFFFFF
_UTF8 = 0x800
_MADE_BY = (3 << 8) | 63  # Unix, version 6.3: the first with Zstandard
_MODE = 0o600 << 16
_ZIP64 = 1  # id of the extra field


@dataclass(frozen=True, slots=True)
class Entry:
    """One member, as the directory has it; ``offset`` is that of its local header."""

    name: str
    method: int
    crc: int
    compressed: int
    size: int
    offset: int


def dos_time() -> tuple[int, int]:
    """The local time now, as (time, date) of a header."""
    now = time.localtime()
    return now.tm_hour << 11 | now.tm_min << 5 | now.tm_sec // 2, (
        now.tm_year - 1980
    ) << 9 | now.tm_mon << 5 | now.tm_mday


def _needs(name: bytes) -> int:
    return 0 if name.isascii() else _UTF8


def local_header(name: bytes, crc: int, compressed: int, size: int, stamp: tuple[int, int]) -> bytes:
    """The header before a member's Zstandard data."""
    extra = b""
    if compressed >= LIMIT32 or size >= LIMIT32:
        extra = struct.pack("<2H2Q", _ZIP64, 16, size, compressed)
        compressed = size = LIMIT32
    head = LOCAL.pack(LOCAL_MAGIC, 63, _needs(name), ZSTD, *stamp, crc, compressed, size, len(name), len(extra))
    return head + name + extra


def central_record(
    name: bytes, crc: int, compressed: int, size: int, offset: int, stamp: tuple[int, int], method: int = ZSTD
) -> bytes:
    """The member's record in the directory."""
    wide = [value for value in (size, compressed, offset) if value >= LIMIT32]
    extra = struct.pack(f"<2H{len(wide)}Q", _ZIP64, 8 * len(wide), *wide) if wide else b""
    # fmt: off
    head = CENTRAL.pack(
        CENTRAL_MAGIC, _MADE_BY, 63, _needs(name), method, *stamp, crc, min(compressed, LIMIT32), min(size, LIMIT32),
        len(name), len(extra), 0, 0, 0, _MODE, min(offset, LIMIT32),
    )
    # fmt: on
    return head + name + extra


def end_records(entries: int, size: int, offset: int) -> bytes:
    """What follows a directory of ``size`` bytes at ``offset``."""
    wide = b""
    if entries >= LIMIT16 or size >= LIMIT32 or offset >= LIMIT32:
        wide = END64.pack(END64_MAGIC, END64.size - 12, _MADE_BY, 63, 0, 0, entries, entries, size, offset)
        wide += END64_LOCATOR.pack(END64_LOCATOR_MAGIC, 0, offset + size, 1)
    short = min(entries, LIMIT16)
    return wide + END.pack(END_MAGIC, 0, 0, short, short, min(size, LIMIT32), min(offset, LIMIT32), 0)


def zip64_values(extra: bytes) -> list[int]:
    """The numbers of the zip64 field among a header's extra fields; empty without one."""
    place = 0
    while place + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, place)
        if kind == _ZIP64:
            data = extra[place + 4 : place + 4 + length]
            return [value for (value,) in struct.iter_unpack("<Q", data[: len(data) // 8 * 8])]
        place += 4 + length
    return []


def decode_name(raw: bytes, flags: int) -> str:
    """A member's name; code page 437 where the UTF-8 flag is absent, as the format says."""
    if raw.isascii():
        return raw.decode("ascii")
    return raw.decode("utf-8", "replace") if flags & _UTF8 else raw.decode("cp437")

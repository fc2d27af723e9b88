"""A log that is not finished: segments under ``<log>.parts/``, and what they look like as one file.

The key of a segment says all that a reader needs to know: ``NNNNNN-<bytes>-<kept>`` holds ``bytes`` of the log, and
behind them the end of the directory at that time, whose first ``kept`` bytes are those of the directory before. So one
listing tells size and structure, and a directory that grows is not sent again with each commit.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from proctor_log_s3._client import Client, Place

__all__ = ["Segment", "Segments", "folder_of", "is_part", "list_objects", "part_keys"]

_NAME = re.compile(r"(\d{6,})-(\d+)-(\d+)")
_AT_ONCE = 16  # requests for pieces of one range


class Segment(NamedTuple):
    """One object: where it is, and what stands in it."""

    number: int
    size: int
    kept: int
    key: str
    total: int
    modified: datetime

    @staticmethod
    def name(number: int, size: int, kept: int) -> str:
        """The last part of the key."""
        return f"{number:06}-{size}-{kept}"


@dataclass(frozen=True, slots=True)
class _Piece:
    """Bytes of the log that stand in one object, from ``offset`` on."""

    start: int
    end: int
    key: str
    offset: int


class Segments:
    """The segments of one log at some time, as one file. Later commits do not change what it shows."""

    def __init__(self, client: Client, bucket: str, found: Iterable[dict[str, Any]]) -> None:
        self._client, self._bucket = client, bucket
        self._pieces: list[_Piece] = []
        self.size = 0
        self.segments = _in_order(found)
        self.mtime = max((one.modified.timestamp() for one in self.segments), default=0.0)
        for one in self.segments:
            self._add(one.key, 0, one.size)
        for key, offset, length in _directory(self.segments):
            self._add(key, offset, length)
        self._starts = [piece.start for piece in self._pieces]

    @property
    def etag(self) -> str:
        """Changes with each commit."""
        last = self.segments[-1] if self.segments else None
        return f"running-{last.number}-{self.size}-{last.modified.timestamp():.0f}" if last else "running"

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes ``[start, end)``.

        Raises:
            FileNotFoundError: the segments are gone, since the log is finished by now.
        """
        wanted = list(self._cut(start, self.size if end is None else min(end, self.size)))
        if len(wanted) <= 1:
            return b"".join(map(self._get, wanted))
        with ThreadPoolExecutor(min(_AT_ONCE, len(wanted))) as threads:
            return b"".join(threads.map(self._get, wanted))

    def _add(self, key: str, offset: int, length: int) -> None:
        if length:
            self._pieces.append(_Piece(self.size, self.size + length, key, offset))
            self.size += length

    def _cut(self, start: int, end: int) -> Iterator[_Piece]:
        index = max(0, bisect_right(self._starts, start) - 1)
        while index < len(self._pieces) and self._pieces[index].start < end:
            piece = self._pieces[index]
            first, last = max(start, piece.start), min(end, piece.end)
            if first < last:
                yield _Piece(first, last, piece.key, piece.offset + first - piece.start)
            index += 1

    def _get(self, piece: _Piece) -> bytes:
        bounds = f"bytes={piece.offset}-{piece.offset + piece.end - piece.start - 1}"
        data = self._client.call("get_object", (self._bucket, piece.key), Range=bounds)["Body"]
        return bytes(data)


def folder_of(key: str) -> str:
    """Where the segments of a log are."""
    return f"{key}.parts/"


def is_part(key: str) -> str | None:
    """The log that an object is a segment of; ``None`` if it is none."""
    log, slash, name = key.rpartition("/")
    return log.removesuffix(".parts") if slash and log.endswith(".parts") and _NAME.fullmatch(name) else None


def list_objects(client: Client, place: Place, **arguments: Any) -> Iterator[dict[str, Any]]:
    """The objects below a prefix, a thousand with each request."""
    bucket, prefix = place
    while True:
        reply = client.call("list_objects_v2", (bucket, ""), Prefix=prefix, **arguments)
        yield from reply.get("Contents", ())
        if not reply.get("IsTruncated"):
            return
        arguments["ContinuationToken"] = reply["NextContinuationToken"]


def part_keys(client: Client, place: Place) -> list[str]:
    """The keys of a log's segments."""
    return [row["Key"] for row in list_objects(client, (place[0], folder_of(place[1])))]


def _in_order(found: Iterable[dict[str, Any]]) -> list[Segment]:
    """By number; of two with one number (a request that failed and came to pass, then another) the later counts."""
    segments: dict[int, Segment] = {}
    for row in found:
        name = _NAME.fullmatch(row["Key"].rpartition("/")[2])
        if name is not None:
            number, size, kept = map(int, name.groups())
            one = Segment(number, size, kept, row["Key"], row["Size"], row["LastModified"])
            if number not in segments or segments[number].modified <= one.modified:
                segments[number] = one
    return [segments[number] for number in sorted(segments)]


def _directory(segments: list[Segment]) -> list[tuple[str, int, int]]:
    """Where the pieces of the last directory are: key, offset and length, first piece first."""
    pieces: list[tuple[str, int, int]] = []
    limit: int | None = None
    for one in reversed(segments):
        end = one.kept + one.total - one.size if limit is None else limit
        if one.kept < end:
            pieces.append((one.key, one.size, end - one.kept))
        limit = min(end, one.kept)
        if limit == 0:
            break
    pieces.reverse()
    return pieces

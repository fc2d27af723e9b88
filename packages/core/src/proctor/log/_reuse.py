"""Samples of earlier logs on their way into a new one, as they are stored: none of them is decoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proctor.log._json import decode
from proctor.log._zip_format import ZSTD, Entry
from proctor.log._zip_read import unpack

__all__ = ["Reused"]


@dataclass(frozen=True, slots=True)
class Reused:
    """A sample of an earlier log.

    Args:
        row: the fields of its summary.
        data: its JSON, packed as ``entry`` says; as it is when that is ``None``.
        entry: what the earlier log's directory says of it.
    """

    row: dict[str, Any]
    data: bytes
    entry: Entry | None

    @property
    def zstd(self) -> Entry | None:
        """The entry of data that can stand in another log as they are."""
        return self.entry if self.entry is not None and self.entry.method == ZSTD else None

    def raw(self) -> bytes:
        """The sample's JSON."""
        return self.data if self.entry is None else unpack(self.entry, self.data)

    def fields(self) -> dict[str, Any]:
        """The sample as JSON data; for who needs what the summary has shortened."""
        found: dict[str, Any] = decode(self.raw())
        return found

"""The base of every record that is written to a log."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue

__all__ = ["JsonValue", "Record"]


class Record(BaseModel):
    """A log record: mutable, compared by value, tolerant of fields it does not know.

    Unknown fields are kept (``extra="allow"``), so a log written by a newer minor version survives being read and
    written again. NaN and infinities are written bare, as the peer's reader expects them.
    """

    model_config = ConfigDict(
        extra="allow",
        ser_json_inf_nan="constants",
        protected_namespaces=(),
        populate_by_name=True,
    )

    def to_dict(self) -> dict[str, Any]:
        """The record as plain Python data, fields that are ``None`` left out (nulls inside free-form data stay)."""
        return self.model_dump(exclude_none=True)

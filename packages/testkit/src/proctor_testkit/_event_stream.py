"""Amazon's event streams: messages of headers and a payload, each with two checksums.

The format: https://smithy.io/2.0/aws/amazon-eventstream.html ("Amazon Event Stream Specification").
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

__all__ = ["corrupted", "event", "exception"]

_STRING = 7  # the type of a header whose value is text


def event(name: str, payload: Mapping[str, Any]) -> bytes:
    """An event with a JSON payload."""
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return _message(headers, json.dumps(payload).encode())


def exception(name: str, message: str) -> bytes:
    """An exception in the place of an event; the stream ends with it."""
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return _message(headers, json.dumps({"message": message}).encode())


def corrupted(message: bytes) -> bytes:
    """``message`` with one bit of its payload turned over, so that its checksum is wrong."""
    return message[:-5] + bytes([message[-5] ^ 1]) + message[-4:]


def _message(headers: Mapping[str, str], payload: bytes) -> bytes:
    named = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack(">II", 12 + len(named) + len(payload) + 4, len(named))
    checked = prelude + struct.pack(">I", zlib.crc32(prelude)) + named + payload
    return checked + struct.pack(">I", zlib.crc32(checked))


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return struct.pack(">B", len(key)) + key + struct.pack(">BH", _STRING, len(text)) + text

"""Amounts, times and command lines as compose files write them."""

from __future__ import annotations

import re
import shlex
from typing import Any

__all__ = ["read_bytes", "read_command", "read_seconds", "shown_number"]

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgtp])(?:i?b)?|b)?", re.IGNORECASE)
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_TIME = re.compile(r"(\d+(?:\.\d+)?|\.\d+)(ms|us|µs|ns|d|h|m|s)")


def read_bytes(value: str | float) -> int:
    """A size in bytes: a number, or text such as ``512m``, ``0.5gb``, ``2GiB`` (all of them powers of 1024).

    Raises:
        ValueError: it is no size.
    """
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        if match is None:
            raise ValueError(f"{value!r} is no size; write bytes, or a number with b, k, m or g such as 512m")
        return int(float(match[1]) * 1024 ** _POWERS.get((match[2] or "").lower(), 0))
    if value != value or value < 0 or value == float("inf"):
        raise ValueError(f"{value!r} is no size")
    return int(value)


def read_seconds(value: str | float) -> float:
    """A duration in seconds: text such as ``1m30s``, ``500ms``, ``1.5h``, or a number of seconds.

    Raises:
        ValueError: it is no duration.
    """
    if not isinstance(value, str):
        return float(value)
    text = value.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    parts = _TIME.findall(text)
    if not parts or "".join(map("".join, parts)) != text:
        raise ValueError(f"{value!r} is no duration; write a number with its unit, such as 30s, 1m30s or 500ms")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def read_command(value: str) -> list[str]:
    """The arguments of a command line: quotes and backslashes as in a shell, and nothing else of one.

    Raises:
        ValueError: a quotation is not closed.
    """
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ValueError(f"{value!r} is no command line: {str(error).lower()}") from None


def shown_number(value: Any) -> str:
    """A scalar as the text that an environment variable, a label or an argument gets."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)

"""What a sample does or waits for, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["operation_text"]

_LINE = 160  # characters of what a failed attempt said


def operation_text(operation: Mapping[str, Any]) -> str:
    """An operation of a sample, in words.

    Args:
        operation: its ``kind``, ``what`` and, where known, ``attempt``, ``left`` (seconds) and ``error``.
    """
    what, attempt = operation["what"], operation.get("attempt", 0)
    nth = f", attempt {attempt}" if attempt > 1 else ""
    error = operation.get("error", "")
    said = f"; {error if len(error) <= _LINE else error[:_LINE] + '…'}" if error else ""
    match operation["kind"]:
        case "gate":
            return f"waits for a connection to {what}{nth}{said}" if attempt else f"waits for a place: {what}"
        case "pace":
            return f"waits for its turn at {what}{nth}{said}"
        case "model":
            return f"waits for {what} to answer{nth}{said}"
        case "retry":
            return f"asks {what} again in {operation['left']:.0f} s{nth}{said}"
        case "tool":
            return f"tool {what}"
        case "sandbox":
            return f"sandbox: {what}"
        case "subprocess":
            return f"subprocess: {what}"
        case "log":
            return f"waits for the log: {what}"
    return f"runs code of its own{f', in {what}' if what else ''}"

"""Keeps a tool's output to what a model can take in."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_MAX_OUTPUT", "Truncated", "truncate_output"]

DEFAULT_MAX_OUTPUT = 16 * 1024
"""Bytes of UTF-8 of a tool's output that a model sees, unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Truncated:
    """An output that was cut: the text for the model, and its size in bytes before and after."""

    text: str
    before: int
    after: int


def truncate_output(tool: str, output: str, limit: int | None) -> Truncated | None:
    """Cut ``output`` to ``limit`` bytes (``None``: the default; 0: never), leaving out its middle.

    Beginning and end are kept: a command's first lines tell what it does, and its last ones how it went.
    Returns ``None`` when nothing had to be cut.
    """
    limit = DEFAULT_MAX_OUTPUT if limit is None else limit
    if limit <= 0 or len(output) * 4 <= limit:
        return None
    data = output.encode("utf-8", errors="replace")
    if len(data) <= limit:
        return None
    head = data[: limit // 2].decode("utf-8", errors="ignore")
    tail = data[len(data) - (limit - limit // 2) :].decode("utf-8", errors="ignore")
    text = (
        f"The output of {tool} was too long to show in full. This is its beginning and its end:\n"
        f"<START_TOOL_OUTPUT>\n{head}{tail}\n<END_TOOL_OUTPUT>"
    )
    return Truncated(text, len(data), limit)

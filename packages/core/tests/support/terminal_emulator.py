"""A terminal that is enough for a frame that is drawn over.

It has rows, wrapping, cursor up, erase in line, and a window that grows and shrinks and breaks its lines anew.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07]*\x07|(\r)|(\n)|([^\x1b\r\n]+)")


class Terminal:
    """Feed it what a program wrote; ``text`` is what a person would see, scrolled-off rows included."""

    def __init__(self, width: int = 80, height: int = 24) -> None:
        self.width = width
        self.height = height
        self._rows: list[list[str]] = [[]]
        self._wrapped: list[bool] = [False]
        self._row = 0
        self._column = 0
        self.unknown: list[str] = []

    def feed(self, output: str) -> None:
        """Act on ``output``; a carriage return is implied by each line feed, as a terminal driver does it."""
        for match in _TOKEN.finditer(output.replace("\r\n", "\n")):
            argument, command, returned, fed, text = match.groups()
            if command:
                self._control(argument, command)
            elif returned:
                self._column = 0
            elif fed:
                self._next_row(wrapped=False)
            elif text:
                for character in text:
                    self._put(character)

    def resize(self, width: int, height: int | None = None) -> None:
        """Make the window ``width`` wide; lines that it had broken are joined and broken anew."""
        del self._rows[self._row + 1 :], self._wrapped[self._row + 1 :]  # blank rows that were erased
        lines: list[list[str]] = []
        for row, wrapped in zip(self._rows, [False, *self._wrapped], strict=False):
            if wrapped and lines:
                lines[-1] += row
            else:
                lines.append(list(row))
        self.width, self.height = width, height or self.height
        self._rows, self._wrapped = [], []
        for line in lines:
            chunks = [line[start : start + width] for start in range(0, len(line), width)] or [[]]
            self._rows += chunks
            self._wrapped += [True] * (len(chunks) - 1) + [False]
        self._row = len(self._rows) - 1

    @property
    def text(self) -> str:
        """All rows, without blanks at their ends and empty rows at the end."""
        return "\n".join("".join(row).rstrip() for row in self._rows).rstrip("\n")

    def _control(self, argument: str, command: str) -> None:
        if command == "A":
            self._row = max(0, len(self._rows) - self.height, self._row - int(argument or 1))
        elif command == "K" and argument == "2":
            self._rows[self._row] = []
            self._wrapped[self._row] = False
        elif command == "m" or (command in "hl" and argument.startswith("?")):
            pass
        else:
            self.unknown.append(f"{argument}{command}")

    def _put(self, character: str) -> None:
        if self._column >= self.width:
            self._next_row(wrapped=True)
        row = self._rows[self._row]
        row.extend(" " * (self._column + 1 - len(row)))
        row[self._column] = character
        self._column += 1

    def _next_row(self, *, wrapped: bool) -> None:
        self._wrapped[self._row] = wrapped
        self._row += 1
        self._column = 0
        if self._row == len(self._rows):
            self._rows.append([])
            self._wrapped.append(False)

"""A block of lines at the bottom of a terminal that is drawn over, whatever the size of the window becomes."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Iterable
from typing import IO, Any, TextIO

from rich.console import Console, RenderableType
from rich.control import Control
from rich.segment import ControlType, Segment
from rich.text import Text

__all__ = ["Frame"]


class _Held:
    """Stands for standard output or error while a frame is shown: whole lines wait until the frame is drawn next.

    Task code that prints must not wait for a terminal, and its text must not be drawn over.
    """

    def __init__(self, stream: TextIO, lines: deque[str]) -> None:
        self._stream = stream
        self._lines = lines
        self._rest = ""
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        with self._lock:
            whole = (self._rest + text).split("\n")
            self._rest = whole.pop()
            self._lines.extend(whole)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """A part of a line waits for its end."""

    def release(self) -> None:
        if self._rest:
            self._lines.append(self._rest)
            self._rest = ""

    @property
    def rich_proxied_file(self) -> TextIO:
        """Where rich writes instead: a console made on ``sys.stdout`` looks it up anew each time."""
        return self._stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Frame:
    """Draws renderables at the bottom of ``console``, each time in place of what it drew before.

    Rich's own ``Live`` counts lines as they were drawn. When a window becomes narrower the terminal breaks them anew,
    so this one counts what they take at the present width. Everything goes out in one write, and the cursor stays
    visible: a process that is killed has nothing to put right.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._widths: list[int] = []
        self._lines: deque[str] = deque()
        self._held: list[tuple[str, IO[str], _Held]] = []

    def open(self) -> None:
        """Hold back what others print."""
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and stream.isatty():
                held = _Held(stream, self._lines)
                self._held.append((name, stream, held))
                setattr(sys, name, held)

    def close(self) -> None:
        """Give the terminal back, with everything that others printed and without the frame."""
        self._give_back()
        self.draw(None)

    def abandon(self) -> None:
        """Give the terminal back as it is, after a fault: what others printed must come out."""
        self._give_back()
        while self._lines:
            sys.stdout.write(self._lines.popleft() + "\n")

    def draw(self, content: RenderableType | None, above: Iterable[RenderableType] = ()) -> None:
        """Write ``above`` and what others printed for good, then ``content`` as the new frame (``None``: no frame)."""
        console = self._console
        with console:  # one write, so that nothing flickers
            self._erase()
            while self._lines:
                console.print(Text.from_ansi(self._lines.popleft()), soft_wrap=True)
            for item in above:
                console.print(item)
            if content is not None:
                self._show(content)

    def _give_back(self) -> None:
        for name, stream, held in self._held:
            held.release()
            if getattr(sys, name) is held:  # somebody else's redirection is not ours to undo
                setattr(sys, name, stream)
        self._held.clear()

    def _erase(self) -> None:
        if not self._widths:
            return
        width, height = self._console.size
        rows = sum(max(1, -(-line // width)) for line in self._widths)
        self._widths = []
        up = min(rows, max(0, height - 1))
        erase = (ControlType.ERASE_IN_LINE, 2)
        console = self._console
        console.control(Control(ControlType.CARRIAGE_RETURN, erase, *((ControlType.CURSOR_UP, 1), erase) * up))

    def _show(self, content: RenderableType) -> None:
        console = self._console
        width, height = console.size
        # A last column that stays free keeps terminals from breaking a full line, a last row from scrolling.
        options = console.options.update(max_width=max(1, width - 1), height=None)
        lines = console.render_lines(content, options, pad=False)[: max(1, height - 1)]
        for line in lines:
            self._widths.append(Segment.get_line_length(line))
            console.print(_Line(line), end="")


class _Line:
    def __init__(self, segments: list[Segment]) -> None:
        self._segments = segments

    def __rich_console__(self, console: Console, options: Any) -> Iterable[Segment]:
        yield from self._segments
        yield Segment.line()

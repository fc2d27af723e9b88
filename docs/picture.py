"""Make docs/demo.svg from a real run in a terminal of its own: `./dev picture`. Nothing is drawn by hand."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import tempfile
import termios
from itertools import groupby
from pathlib import Path

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

WIDTH, HEIGHT = 100, 60
ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "demo.svg"
SHOWN = "./dev demo"
# The screen is shown as it was at this point of the run, and at its end.
MIDDLE = re.compile(r"\b3\d/50\b")
# rich's page fetches a font from elsewhere; whoever looks at a README should not.
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def screens(command: list[str]) -> tuple[list[Text], list[Text]]:
    """Run ``command`` in a terminal and return what stood on it in the middle of the run, and at the end."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": str(WIDTH), "LINES": str(HEIGHT), "COLORTERM": "truecolor"}
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    shown = pyte.Screen(WIDTH, HEIGHT)
    stream = pyte.ByteStream(shown)
    middle: list[Text] = []
    while chunk := _read(terminal):
        stream.feed(chunk)
        if not middle and MIDDLE.search("\n".join(shown.display)):
            middle = lines(shown)
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit("\n".join(shown.display))
    return middle, lines(shown)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux: the other end is closed
        return b""


def _style(cell: pyte.screens.Char) -> Style:
    return Style(color=_colour(cell.fg), bgcolor=_colour(cell.bg), bold=cell.bold, reverse=cell.reverse)


def _colour(name: str) -> str | None:
    if name == "default":
        return None
    if re.fullmatch(r"[0-9a-f]{6}", name):
        return f"#{name}"
    return name.replace("brown", "yellow").replace("bright", "bright_")


def lines(shown: pyte.Screen) -> list[Text]:
    """The screen's lines with their styles, without the empty ones at the end."""
    found = []
    for row in range(HEIGHT):
        cells = [shown.buffer[row][column] for column in range(WIDTH)]
        line = Text()
        for style, same in groupby(cells, key=_style):
            # Word by word: not every viewer keeps the blanks at the ends of a piece of text.
            for piece in re.split(r"( +)", "".join(cell.data for cell in same)):
                line.append(piece, style)
        line.rstrip()
        found.append(line)
    while found and not found[-1].plain:
        found.pop()
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        # A folder in which the paths on the screen look as they do in a fresh checkout.
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        os.chdir(folder)
        middle, end = screens(sys.argv[1:])
        os.chdir(ROOT)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere)
        console.print(Text(f"$ {SHOWN}", style="bold"))
        for line in [*middle, Text(), Text("and at the end:", style="dim"), *end]:
            console.print(line, no_wrap=True, crop=True)
        svg = console.export_svg(title="Proctor", unique_id="demo")
    TARGET.write_text(FONT.sub("", svg) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

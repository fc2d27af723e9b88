"""Make docs/demo.svg from a real run in a terminal of its own: `./dev picture`. Nothing is drawn by hand."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

WIDTH, HEIGHT = 100, 60
TARGET = Path(__file__).parent / "demo.svg"
SHOWN = "./dev demo"
# rich's page fetches a font from elsewhere; whoever looks at a README should not.
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def screen(command: list[str]) -> pyte.Screen:
    """Run ``command`` in a terminal and return what stands on it at the end."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": str(WIDTH), "LINES": str(HEIGHT), "COLORTERM": "truecolor"}
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    shown = pyte.Screen(WIDTH, HEIGHT)
    stream = pyte.ByteStream(shown)
    while chunk := _read(terminal):
        stream.feed(chunk)
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit("\n".join(shown.display))
    return shown


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux: the other end is closed
        return b""


def _colour(name: str) -> str | None:
    if name == "default":
        return None
    return (
        f"#{name}"
        if re.fullmatch(r"[0-9a-f]{6}", name)
        else name.replace("brown", "yellow").replace("bright", "bright_")
    )


def lines(shown: pyte.Screen) -> list[Text]:
    """The screen's lines with their styles, without the empty ones at the end."""
    found = []
    for row in range(HEIGHT):
        line = Text()
        for column in range(WIDTH):
            cell = shown.buffer[row][column]
            style = Style(color=_colour(cell.fg), bgcolor=_colour(cell.bg), bold=cell.bold, reverse=cell.reverse)
            line.append(cell.data, style)
        line.rstrip()
        found.append(line)
    while found and not found[-1].plain:
        found.pop()
    return found


def main() -> None:
    shown = lines(screen(sys.argv[1:]))
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"))  # noqa: SIM115 - closed with the process
    console.print(Text(f"$ {SHOWN}", style="bold"))
    for line in shown:
        console.print(line, no_wrap=True, crop=True)
    svg = console.export_svg(title="Proctor", unique_id="demo")
    TARGET.write_text(FONT.sub("", svg) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""What comes back of a command: its two streams, told apart from what the shell around it says on them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from proctor_sandbox_k8s._script import BLOCK

__all__ = ["Outcome", "Output"]

_COUNT = re.compile(r"(\d+) bytes")
_BLOCKS = re.compile(r"(\d+)\+\d+ records out")
_CODE = re.compile(r"code (\d+)")
_KIND = re.compile(r"kind ([a-z-]+)")
_COUNTS = re.compile(r"@([12]) ([^@]*)")
_LINE = 1000  # bytes that a line of the shell's own may have


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended.

    Args:
        code: the shell's: 128 + n for a signal n.
        kinds: what the shell had to say: ``missing``, ``denied``, ``cwd-missing``, ...
        cut_input: the command was given less than there was.
    """

    code: int
    kinds: tuple[str, ...]
    cut_input: bool


class _Stream:
    """One stream: what the command wrote, up to the line that ends it."""

    def __init__(self, end: bytes, limit: int) -> None:
        self.data = bytearray()
        self.line: bytes | None = None
        self.rest = b""
        self.received = 0
        self._end = end
        self._limit = limit
        self._searched = 0

    def feed(self, data: bytes) -> None:
        self.received += len(data)
        if self.line is not None:
            # Behind the end is only what is left in the background, and the counts: the last line is enough.
            self.rest = (self.rest + data)[-_LINE:]
            return
        self.data += data
        at = self.data.find(self._end, max(0, self._searched - len(self._end)))
        self._searched = len(self.data) if at < 0 else at
        if at < 0:
            return
        close = self.data.find(b"\n", at)
        if close < 0:
            return
        self.line = bytes(self.data[at + len(self._end) : close])
        self.rest = bytes(self.data[close + 1 :])[-_LINE:]
        del self.data[at:]

    @property
    def too_long(self) -> bool:
        return len(self.data) > self._limit + (0 if self.line is not None else _LINE)


class Output:
    """Both streams of a command.

    Args:
        token: by which the lines of the shell around it are known.
        ready: the token of its first line, which comes before everything else.
        sent: bytes of input.
        limit: bytes of a stream that are taken in.
    """

    def __init__(self, token: str, ready: str, sent: int = 0, limit: int = 10 * 1024**2) -> None:
        self.ready = False
        self._first = f"{ready} ready\n".encode()
        self._head = bytearray()
        self._counts = f"{token} counts ".encode()
        self._sent = sent
        self._out = _Stream(f"{token} end ".encode(), limit)
        self._err = _Stream(f"{token} end".encode(), limit)

    def feed(self, channel: int, data: bytes) -> None:
        """Take in what came on stdout (1) or stderr (2)."""
        if channel == 2:
            self._err.feed(data)
        elif self.ready:
            self._out.feed(data)
        else:
            self._head += data
            found = self._head.find(self._first)  # a runtime may say something of its own before
            if found >= 0:
                self.ready = True
                self._out.feed(bytes(self._head[found + len(self._first) :]))
                self._head.clear()

    @property
    def stdout(self) -> bytes:
        """What the command wrote to it so far."""
        return bytes(self._out.data)

    @property
    def stderr(self) -> bytes:
        """The same, of standard error."""
        return bytes(self._err.data)

    @property
    def said(self) -> str:
        """What came instead of the first line, for messages."""
        return bytes(self._head[-_LINE:]).decode("utf-8", "replace").strip()

    @property
    def too_long(self) -> int:
        """The stream that has more than is taken in: 1, 2, or 0."""
        return 1 if self._out.too_long else 2 if self._err.too_long else 0

    @property
    def ended(self) -> bool:
        """Whether the command has ended, and all that it wrote is here."""
        return self._out.line is not None and self._err.line is not None

    @property
    def closed(self) -> bool:
        """Whether the counts are here, too, and right: nothing can come any more."""
        return self.ended and self.counted and not self._short()

    @property
    def counted(self) -> bool:
        """Whether the counts are here, though perhaps not yet all that they count."""
        return self._told() is not None

    def outcome(self) -> Outcome:
        """How the command ended; once ``ended``."""
        told = (self._out.line or b"").decode("ascii", "replace")
        code = _CODE.search(told)
        # A command need not read its input: then `dd` was ended, or says so.
        cut = self._sent > 0 and "rror" not in told and self._cut_input(told)
        return Outcome(int(code[1]) if code else 255, tuple(_KIND.findall(told)), cut)

    def _cut_input(self, told: str) -> bool:
        if count := _COUNT.search(told):
            return int(count[1]) < self._sent
        blocks = _BLOCKS.search(told)
        return blocks is not None and int(blocks[1]) < self._sent // BLOCK

    def problem(self) -> str | None:
        """What is missing of the streams, by the counts of the shell; once nothing more can come.

        Without counts (something in the background holds the streams, or the image's ``dd`` does not count) the two
        ends vouch for what came before them.
        """
        if not self.ended:
            got = f"{len(self._out.data):,} bytes of stdout and {len(self._err.data):,} of stderr"
            return f"the stream ended without an end of the command ({got} had come)"
        return self._short()

    def _short(self) -> str | None:
        for name, want, got in self._amounts():
            if want is not None and want != got:
                return f"{want:,} bytes went out on {name}, and {got:,} came"
        return None

    def _amounts(self) -> list[tuple[str, int | None, int]]:
        told = self._told()
        if told is None:
            return []
        line, behind = told
        wanted = {number: _COUNT.search(text) for number, text in _COUNTS.findall(line)}
        out, err = wanted.get("1"), wanted.get("2")
        return [
            ("stdout", int(out[1]) if out else None, self._out.received - behind),
            ("stderr", int(err[1]) if err else None, self._err.received),
        ]

    def _told(self) -> tuple[str, int] | None:
        """The line of counts, and the bytes that it and what follows it take of stdout."""
        at = self._out.rest.rfind(self._counts)
        if at < 0:
            return None
        line, newline, _ = self._out.rest[at + len(self._counts) :].partition(b"\n")
        return (line.decode("ascii", "replace"), len(self._out.rest) - at) if newline else None

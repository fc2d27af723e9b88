"""The two formats as things that grow by commits: what is appended, and what stands behind it until the next one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from proctor.log._json import encode, fields, visible
from proctor.log._reuse import Reused
from proctor.log._spool import ReductionSpool
from proctor.log._zip_write import ZipBuilder, member_name
from proctor.log._zstd import decompress
from proctor.schema import EvalLog, EvalSample

__all__ = [
    "EvalLayout",
    "JsonLayout",
    "Layout",
    "Read",
    "Replace",
    "header_json",
    "json_log",
    "sample_member",
    "sample_order",
    "start_json",
]

Read = Callable[[int, int], bytes]
Replace = Callable[[Callable[[], Iterable[bytes]]], None]


class Layout(ABC):
    """A log in one of the formats. Segments are appended; ``directory`` always stands behind the last of them."""

    directory: bytearray
    held = 0
    """Bytes that wait for the next segment."""

    @abstractmethod
    def begin(self, log: EvalLog) -> bytes:
        """The first segment."""

    @abstractmethod
    def pack(self, samples: Sequence[tuple[EvalSample, bytes]]) -> None:
        """Take encoded samples into the next segment."""

    @abstractmethod
    def copy(self, samples: Sequence[Reused]) -> None:
        """Take samples of earlier logs into the next segment, as they are stored."""

    @abstractmethod
    def segment(self, summaries: Sequence[bytes]) -> bytes:
        """All that was taken since the last segment, and its summaries; ``directory`` includes it on return."""

    @abstractmethod
    def former(self) -> bytes:
        """The directory of the last commit that ``settle`` confirmed."""

    @abstractmethod
    def settle(self) -> None:
        """The last segment is written."""

    @abstractmethod
    def finish(self, log: EvalLog, reductions: ReductionSpool | None, read: Read, replace: Replace) -> bytes:
        """The last segment, or nothing when the log was written anew with ``replace``."""


class EvalLayout(Layout):
    """The ``.eval`` format: a ZIP of JSON members."""

    def __init__(self) -> None:
        self._zip = ZipBuilder()
        self._parts: list[bytes] = []
        self._flushes = 0
        self._journal: list[
            tuple[int, int, int]
        ] = []  # offset, header length, compressed size of each summaries member
        self.directory = self._zip.directory
        self._tail = 0  # length of the end record, while it stands behind the directory
        self._former_size = 0
        self._former = b""

    def begin(self, log: EvalLog) -> bytes:
        return self._close(self._zip.add([("_journal/start.json", start_json(log))]))

    def pack(self, samples: Sequence[tuple[EvalSample, bytes]]) -> None:
        self._open()
        before = self._zip.offset
        self._parts += self._zip.add([(sample_member(sample.id, sample.epoch), raw) for sample, raw in samples])
        self.held += self._zip.offset - before

    def copy(self, samples: Sequence[Reused]) -> None:
        self._open()
        before = self._zip.offset
        packed: list[tuple[bytes, int, int, bytes]] = []
        for one in samples:
            name, entry = sample_member(one.row["id"], one.row["epoch"]), one.zstd
            if entry is not None:
                packed.append((member_name(name), entry.crc, entry.size, one.data))
            else:
                self._parts += self._zip.add([(name, one.raw())])
        self._parts += self._zip.add_compressed(packed)
        self.held += self._zip.offset - before

    def segment(self, summaries: Sequence[bytes]) -> bytes:
        parts, self._parts, self.held = self._parts, [], 0
        self._open()
        if summaries:
            self._flushes += 1
            name, start = f"_journal/summaries/{self._flushes}.json", self._zip.offset
            member = self._zip.add([(name, b"[%b]" % b",".join(summaries))])
            self._journal.append((start, len(member[0]), len(member[1])))
            parts += member
        return self._close(parts)

    def _open(self) -> None:
        """Take the end record off, so that the directory can grow."""
        if self._tail:
            del self.directory[-self._tail :]
            self._tail = 0

    def _close(self, parts: list[bytes]) -> bytes:
        end = self._zip.end()
        self._tail = len(end)
        self.directory += end
        return b"".join(parts)

    def former(self) -> bytes:
        return bytes(self.directory[: self._former_size]) + self._former

    def settle(self) -> None:
        self._former_size = len(self.directory) - self._tail
        self._former = bytes(self.directory[self._former_size :])

    def finish(self, log: EvalLog, reductions: ReductionSpool | None, read: Read, replace: Replace) -> bytes:
        self._open()
        parts = self._zip.add_streamed("summaries.json", self._summaries(read))
        if reductions is not None:
            parts += self._zip.add_streamed("reductions.json", reductions.chunks())
        parts += self._zip.add([("header.json", header_json(log))])
        return self._close(parts)

    def _summaries(self, read: Read) -> Iterable[bytes]:
        """All summaries as one array, read back from the journal one member at a time: they are nowhere in memory."""
        yield b"["
        first = True
        for offset, head, size in self._journal:
            rows = decompress(read(offset + head, offset + head + size))[1:-1]
            yield rows if first else b"," + rows
            first = False
        yield b"]"


class JsonLayout(Layout):
    """The ``.json`` format: while running, samples are appended and the closing brackets stand behind them."""

    def __init__(self) -> None:
        self.directory = bytearray(b"\n]}\n")
        self._parts: list[bytes] = []
        self._places: list[tuple[tuple[int, str], int, int]] = []  # order, start and end of each sample
        self._offset = 0

    def begin(self, log: EvalLog) -> bytes:
        head = b'%b,\n"samples":[' % json_head(log)
        self._offset = len(head)
        return head

    def pack(self, samples: Sequence[tuple[EvalSample, bytes]]) -> None:
        for sample, raw in samples:
            self._take(sample_order(sample), raw)

    def copy(self, samples: Sequence[Reused]) -> None:
        for one in samples:
            self._take(_order(one.row["id"], one.row["epoch"]), one.raw())

    def _take(self, order: tuple[int, str], raw: bytes) -> None:
        raw = visible(raw)
        part = b"%b\n%b" % (b"," if self._places else b"", raw)
        self._offset += len(part)
        self._places.append((order, self._offset - len(raw), self._offset))
        self._parts.append(part)
        self.held += len(part)

    def segment(self, summaries: Sequence[bytes]) -> bytes:
        parts, self._parts, self.held = self._parts, [], 0
        return b"".join(parts)

    def former(self) -> bytes:
        return bytes(self.directory)

    def settle(self) -> None:
        pass

    def finish(self, log: EvalLog, reductions: ReductionSpool | None, read: Read, replace: Replace) -> bytes:
        # Readers of headers want status and results before the samples, so the file is written anew.
        places = sorted(self._places, key=lambda item: item[0])

        def whole() -> Iterable[bytes]:
            samples = (read(start, end) for _, start, end in places)
            return json_log(log, samples, None if reductions is None else reductions.chunks())

        replace(whole)
        return b""


def start_json(log: EvalLog) -> bytes:
    """The content of ``_journal/start.json``."""
    return encode({"version": log.version, "eval": log.eval, "plan": log.plan})


def header_json(log: EvalLog, indent: int | None = None) -> bytes:
    """The log without samples and reductions, its keys in the order of the format."""
    value = fields(log)
    for name in ("samples", "reductions", "location", "etag"):
        value.pop(name, None)
    return encode(value, indent=indent)


def json_head(log: EvalLog) -> bytes:
    """The beginning of a ``.json`` log, up to the last field before the samples."""
    return visible(header_json(log, indent=2)).rstrip()[:-1].rstrip()


def json_log(log: EvalLog, samples: Iterable[bytes] | None, reductions: Iterable[bytes] | None) -> Iterable[bytes]:
    """A ``.json`` log in pieces."""
    yield json_head(log)
    if samples is not None:
        yield b',\n"samples":['
        for index, sample in enumerate(samples):
            yield b",\n" if index else b"\n"
            yield visible(sample)
        yield b"\n]"
    if reductions is not None:
        yield b',\n"reductions":'
        yield visible(b"".join(reductions))
    yield b"\n}\n"


def sample_member(id: int | str, epoch: int) -> str:
    """The name of the member that holds a sample; ids 1 and "1" share one."""
    return f"samples/{id}_epoch_{epoch}.json"


def sample_order(sample: EvalSample) -> tuple[int, str]:
    """The order of samples in a log that is read as a whole: by epoch, then by id, numbers by value."""
    return _order(sample.id, sample.epoch)


def _order(id: int | str, epoch: int) -> tuple[int, str]:
    return epoch, f"{id:020d}" if isinstance(id, int) else str(id)

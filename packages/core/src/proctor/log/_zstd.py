"""Compression of members: Zstandard, level 3, as the format's other writer uses it."""

from __future__ import annotations

import threading
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["compress", "compress_many", "compress_stream", "decompress", "decompress_chunks", "inflate"]

_LEVEL = 3
_local = threading.local()  # contexts are costly to make and may not be shared between threads


def _compressor() -> Any:
    found = getattr(_local, "compressor", None)
    if found is None:
        import zstandard

        found = _local.compressor = zstandard.ZstdCompressor(level=_LEVEL)
    return found


def compress(data: bytes) -> bytes:
    """``data`` as one frame that says its size."""
    return bytes(_compressor().compress(data))


def compress_stream() -> Any:
    """A compressor of one frame that is fed in pieces: ``compress(data)`` and, at the end, ``flush()``."""
    import zstandard

    return zstandard.ZstdCompressor(level=_LEVEL).compressobj()


def compress_many(blocks: Sequence[bytes]) -> list[bytes]:
    """Each block as a frame of its own.

    One call for all, because each call lets go of the interpreter lock and may wait 5 ms to get it back from a busy
    event loop.
    """
    if len(blocks) < 2 or not all(blocks):
        return [compress(block) for block in blocks]
    compressor = _compressor()
    many = getattr(compressor, "multi_compress_to_buffer", None)  # only in zstandard's C back-end
    if many is None:
        return [compress(block) for block in blocks]
    return [segment.tobytes() for segment in many(list(blocks))]


def decompress(data: bytes, size: int | None = None) -> bytes:
    """The content of all frames in ``data``, one after the other; frames need not say their size.

    Raises:
        ValueError: if ``data`` is damaged or cut.
    """
    import zstandard

    found = getattr(_local, "decompressor", None)
    if found is None:
        found = _local.decompressor = zstandard.ZstdDecompressor()
    try:
        if data and size is not None and zstandard.frame_content_size(data) == size:
            return bytes(found.decompress(data))  # the first frame is all there is
        parts = []
        while data:
            # decompress() and stream_reader() take a frame that is cut for complete: ask each frame for its end.
            frame = found.decompressobj()
            parts.append(frame.decompress(data))
            if not frame.eof:
                raise ValueError("a Zstandard frame is cut")
            data = frame.unused_data
        return b"".join(parts)
    except zstandard.ZstdError as error:
        raise ValueError(f"damaged Zstandard data: {error}") from error


def decompress_chunks(data: bytes, size: int = 1 << 16) -> Iterator[bytes]:
    """The content of all frames in ``data``, in pieces made from ``size`` bytes each: who stops early pays for less.

    Raises:
        ValueError: if ``data`` is damaged.
    """
    import zstandard

    decompressor = zstandard.ZstdDecompressor()
    frame = decompressor.decompressobj()
    try:
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            while piece:
                yield frame.decompress(piece)
                piece = frame.unused_data if frame.eof else b""
                if frame.eof:
                    frame = decompressor.decompressobj()
    except zstandard.ZstdError as error:
        raise ValueError(f"damaged Zstandard data: {error}") from error


def inflate(data: bytes) -> bytes:
    """The content of raw deflate data.

    Raises:
        ValueError: if ``data`` is damaged or cut.
    """
    stream = zlib.decompressobj(-15)
    try:
        content = stream.decompress(data)
    except zlib.error as error:
        raise ValueError(f"damaged deflate data: {error}") from error
    if not stream.eof:
        raise ValueError("deflate data is cut")
    return content

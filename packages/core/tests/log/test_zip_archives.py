"""Archives: what we write any reader of ZIP files can list, and what others write we can read."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from proctor.log._zip_format import LOCAL, ZSTD, central_record, end_records, local_header
from proctor.log._zip_read import BadLogError, ZipReader
from proctor.log._zip_write import ZipBuilder, member_name
from proctor.log._zstd import compress_many, decompress

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\\"), min_size=1, max_size=40)
MEMBERS = st.lists(st.tuples(NAMES, st.binary(max_size=400)), max_size=12)


def opened(data: bytes) -> ZipReader:
    return ZipReader(lambda start, end: data[start:end], len(data))


def built(members: list[tuple[str, bytes]]) -> bytes:
    builder = ZipBuilder()
    parts = builder.add(members)
    return b"".join([*parts, bytes(builder.directory), builder.end()])


@given(MEMBERS)
def test_what_is_written_is_read_back(members: list[tuple[str, bytes]]) -> None:
    reader = opened(built(members))
    assert not reader.torn
    assert [entry.name for entry in reader.records] == [name for name, _ in members]
    assert {name: reader.read(name) for name in reader.entries} == dict(members)  # of one name, the last entry wins


@given(MEMBERS)
def test_the_standard_library_lists_our_archives(members: list[tuple[str, bytes]]) -> None:
    with zipfile.ZipFile(io.BytesIO(built(members))) as archive:
        found = [(info.filename, info.file_size, info.CRC, info.compress_type) for info in archive.infolist()]
    assert found == [(name, len(data), zlib.crc32(data), ZSTD) for name, data in members]


@given(MEMBERS, st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]), st.booleans(), st.binary(max_size=60))
def test_archives_of_the_standard_library_are_read(
    members: list[tuple[str, bytes]], method: int, streamed: bool, comment: bytes
) -> None:
    # given an archive with a comment and, when streamed, with sizes behind the data (data descriptors)
    buffer = io.BytesIO()
    target: Any = _Unseekable(buffer) if streamed else buffer
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, data in dict(members).items():
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=method)
        archive.comment = comment
    # when it is read, then all members are there
    reader = opened(buffer.getvalue())
    assert not reader.torn
    assert {entry.name: reader.content(entry) for entry in reader.records} == dict(members)


class _Unseekable(io.RawIOBase):
    def __init__(self, target: io.BytesIO) -> None:
        self._target = target

    def write(self, data: Any) -> int:
        return self._target.write(data)

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def test_zip64_fields_that_only_the_local_header_has() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, archive.open("a", "w", force_zip64=True) as member:
        member.write(b"content")
    assert opened(buffer.getvalue()).read("a") == b"content"


@pytest.mark.slow
def test_more_entries_than_16_bits_count() -> None:
    record = b"".join(central_record(b"%d" % number, 0, 0, 0, 0, (0, 33)) for number in range(70_000))
    data = record + end_records(70_000, len(record), 0)
    reader = opened(data)
    assert len(reader.records) == 70_000 and "69999" in reader.entries
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert len(archive.infolist()) == 70_000


@pytest.mark.parametrize("offset", [5, 0xFFFFFFFF, 1 << 40])
@pytest.mark.parametrize("size", [5, 0xFFFFFFFF, 1 << 33])
def test_sizes_and_offsets_beyond_32_bits(offset: int, size: int) -> None:
    record = central_record(b"big", 7, size, size + 1, offset, (0, 33))
    data = record + end_records(1, len(record), 0)
    (entry,) = opened(data).records
    assert (entry.compressed, entry.size, entry.offset, entry.crc) == (size, size + 1, offset, 7)
    header = local_header(b"big", 7, size, size + 1, (0, 33))
    assert len(header) == LOCAL.size + 3 + (20 if size >= 0xFFFFFFFF - 1 else 0)


def test_an_end_record_inside_a_member_is_not_taken_for_the_end() -> None:
    trap = end_records(1, 46, 3)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("trap", trap)
    assert opened(buffer.getvalue() + b"\n").read("trap") == trap


@pytest.mark.parametrize("data", [b"", b"PK", b"{}", b"junk" * 100, b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_archive_is_refused(data: bytes) -> None:
    with pytest.raises(BadLogError):
        opened(data)


def test_unknown_methods_are_named() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a", b"x" * 100)
    with pytest.raises(BadLogError, match="method 14"):
        opened(buffer.getvalue()).read("a")


def test_damaged_data_is_named() -> None:
    data = bytearray(built([("a", b"some text" * 20)]))
    data[LOCAL.size + 1 : LOCAL.size + 20] = bytes(19)
    with pytest.raises(BadLogError, match="'a'"):
        opened(bytes(data)).read("a")


@given(st.lists(st.binary(max_size=300), max_size=5), st.booleans())
def test_frames_without_a_size_one_behind_the_other(blocks: list[bytes], with_size: bool) -> None:
    frames = []
    for block in blocks:
        stream = zstandard.ZstdCompressor(level=1, write_content_size=with_size).compressobj()
        frames.append(stream.compress(block) + stream.flush())
    data, content = b"".join(frames), b"".join(blocks)
    assert decompress(data, len(content)) == content
    assert decompress(data) == content


def test_a_cut_frame_is_refused() -> None:
    stream = zstandard.ZstdCompressor().compressobj()
    frame = stream.compress(b"text " * 1000) + stream.flush()
    for end in range(1, len(frame)):
        with pytest.raises(ValueError):
            decompress(frame[:end], 5000)


@given(st.lists(st.binary(max_size=50), max_size=4))
def test_compressing_many_at_once(blocks: list[bytes]) -> None:
    assert [decompress(frame) for frame in compress_many(blocks)] == blocks


def test_names_that_utf8_or_the_format_cannot_hold() -> None:
    assert member_name("samples/\ud83d_epoch_1.json") == rb"samples/\ud83d_epoch_1.json"
    long = member_name("samples/" + "ü" * 70_000 + "_epoch_1.json")
    assert len(long) < 0xFFFF and long.decode() != member_name("samples/" + "ü" * 70_001 + "_epoch_1.json").decode()
    assert struct.pack("<H", len(long))

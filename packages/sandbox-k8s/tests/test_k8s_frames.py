"""WebSocket frames, and the lines that a command's shell puts around what it wrote: however the bytes are cut."""

from __future__ import annotations

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor_sandbox_k8s._frames import BINARY, CLOSE, PING, PONG, TEXT, BadFrame, FrameReader, Message, encode
from proctor_sandbox_k8s._output import Output

MIB = 1024**2


def of_server(opcode: int, data: bytes, *, final: bool = True) -> bytes:
    """A frame as a server sends it: not masked."""
    size = len(data)
    first = (0x80 if final else 0) | opcode
    if size < 126:
        return struct.pack("!BB", first, size) + data
    if size < 1 << 16:
        return struct.pack("!BBH", first, 126, size) + data
    return struct.pack("!BBQ", first, 127, size) + data


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """``data`` cut at these places."""
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


MESSAGES = st.lists(
    st.tuples(st.sampled_from([TEXT, BINARY, PING, PONG, CLOSE]), st.binary(max_size=125))
    | st.tuples(st.just(BINARY), st.sampled_from([126, 65535, 65536]).map(lambda size: b"x" * size)),
    max_size=5,
)
CUTS = st.lists(st.integers(0, 200_000), max_size=8)


@given(MESSAGES, CUTS)
def test_messages_come_whole_however_the_bytes_are_cut(messages: list[tuple[int, bytes]], cuts: list[int]) -> None:
    reader = FrameReader()
    data = b"".join(of_server(opcode, body) for opcode, body in messages)

    found = [message for piece in pieces(data, cuts) for message in reader.feed(piece)]

    assert found == [Message(opcode, body) for opcode, body in messages]
    assert reader.between_messages


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=5))
def test_a_message_in_parts_is_put_together_around_a_ping(parts: list[bytes]) -> None:
    frames = []
    for number, part in enumerate(parts):
        frames.append(of_server(0 if number else BINARY, part, final=number == len(parts) - 1))
        if number < len(parts) - 1:
            frames.append(of_server(PING, b"there?"))

    found = list(FrameReader().feed(b"".join(frames)))

    assert found[-1] == Message(BINARY, b"".join(parts))
    assert found[:-1] == [Message(PING, b"there?")] * (len(parts) - 1)


@given(st.binary(max_size=100))
def test_any_bytes_are_messages_or_no_frame(data: bytes) -> None:
    try:
        list(FrameReader().feed(data))
    except BadFrame:
        return


@given(st.binary(max_size=70_000), st.binary(min_size=4, max_size=4))
def test_what_is_sent_is_masked(data: bytes, mask: bytes) -> None:
    frame = encode(BINARY, data, mask)

    body = frame[-len(data) :] if data else b""
    assert frame[1] & 0x80, "a server refuses frames that are not"
    assert frame[len(frame) - len(data) - 4 : len(frame) - len(data)] == mask
    assert bytes(byte ^ mask[at % 4] for at, byte in enumerate(body[:50])) == data[:50]


@pytest.mark.parametrize("head", [b"\x80\x80", b"\xf2\x00", b"\x00\x00", b"\x09\x00", b"\x82\x7f" + b"\xff" * 8])
def test_what_no_server_may_send_is_refused(head: bytes) -> None:
    with pytest.raises(BadFrame):
        list(FrameReader().feed(head + b"\0" * 10))


# The shell's lines


def told(out: bytes, err: bytes, *, code: int = 0, count: bool = True, extra: bytes = b"") -> tuple[bytes, bytes]:
    """What comes on both channels for a command that wrote ``out`` and ``err``."""
    first, second = out + b"tok end code %d\n" % code + extra, err + b"tok end\n"
    told = b"tok counts @1 0+1 records out %d bytes copied @2 %d bytes copied\n" % (len(first), len(second))
    return b"rdy ready\n" + first + (told if count else b""), second


def fed(stdout: bytes, stderr: bytes, cuts: list[int] | None = None, **options: int) -> Output:
    output = Output("tok", "rdy", **options)
    for channel, data in ((1, stdout), (2, stderr)):
        for piece in pieces(data, cuts or []):
            output.feed(channel, piece)
    return output


@given(st.binary(max_size=300), st.binary(max_size=300), st.integers(0, 255), CUTS, st.binary(max_size=20))
def test_both_streams_come_back_to_the_byte(out: bytes, err: bytes, code: int, cuts: list[int], extra: bytes) -> None:
    output = fed(*told(out, err, code=code, extra=extra), cuts)

    assert (output.stdout, output.stderr) == (out, err)
    assert output.ended and output.closed and output.problem() is None
    assert output.outcome().code == code


@given(st.binary(max_size=200), st.binary(max_size=200), st.data())
def test_a_stream_that_is_cut_anywhere_is_never_taken_for_whole(out: bytes, err: bytes, data: st.DataObject) -> None:
    stdout, stderr = told(out, err)
    which = data.draw(st.booleans())
    cut = data.draw(st.integers(0, len(stdout if which else stderr) - 1))

    output = fed(stdout[:cut] if which else stdout, stderr if which else stderr[:cut])

    # Only the counts may be missing, when both ends are there: these vouch for all before them.
    assert not output.closed
    assert output.problem() is not None or (output.stdout, output.stderr) == (out, err)


@given(st.binary(min_size=1, max_size=200), st.data())
def test_bytes_that_are_lost_in_the_middle_are_noticed(out: bytes, data: st.DataObject) -> None:
    stdout, stderr = told(out, b"")
    start = data.draw(st.integers(0, len(out) - 1)) + len(b"rdy ready\n")

    output = fed(stdout[:start] + stdout[start + 1 :], stderr)

    assert "bytes went out on stdout" in (output.problem() or "")


def test_without_counts_the_ends_vouch_for_what_came() -> None:
    output = fed(*told(b"out", b"err", count=False))

    assert output.ended and not output.closed and output.problem() is None


def test_what_a_runtime_says_before_the_shell_is_no_output() -> None:
    stdout, stderr = told(b"out", b"")

    output = fed(b"WARNING: cgroups\n" + stdout, stderr)

    assert output.stdout == b"out" and output.closed


@pytest.mark.parametrize(("count", "text", "cut"), [(10, "", False), (4, "", True), (4, "write error ", False)])
def test_input_that_was_cut_is_noticed_but_not_what_nobody_read(count: int, text: str, cut: bool) -> None:
    line = f"tok end {text}{count} bytes copied code 0\n".encode()

    output = fed(b"rdy ready\n" + line, b"tok end\n", sent=10)

    assert output.outcome().cut_input is cut


@pytest.mark.parametrize("channel", [1, 2])
def test_more_than_is_taken_in_is_noticed_before_it_is_all_there(channel: int) -> None:
    whole = fed(*told(b"x" * 10_000, b"y" * 10_000), limit=10_000)
    more = Output("tok", "rdy", limit=10_000)
    more.feed(1, b"rdy ready\n")
    more.feed(channel, b"x" * 12_000)

    assert whole.too_long == 0
    assert more.too_long == channel


def test_a_large_output_is_not_searched_again_and_again() -> None:
    output = Output("tok", "rdy", limit=64 * MIB)
    output.feed(1, b"rdy ready\n")
    for _ in range(1024):
        output.feed(1, b"t" * 32 * 1024)
    output.feed(1, b"tok end code 0\n")

    assert len(output.stdout) == 32 * MIB

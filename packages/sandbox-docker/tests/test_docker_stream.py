"""The streams of a command, from an engine that is slow: a server on a Unix socket that says what it is told."""

from __future__ import annotations

import os
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor_sandbox_docker._address import Address
from proctor_sandbox_docker._frames import Frames
from proctor_sandbox_docker._stream import Stream

Serve = Callable[[Callable[[socket.socket], None]], Stream]


def frame(stream: int, data: bytes) -> bytes:
    return struct.pack(">BxxxL", stream, len(data)) + data


@pytest.fixture
def frames() -> Frames:
    return Frames(1000)


@pytest.fixture
def serve(frames: Frames) -> Iterator[Serve]:
    """A stream to a server that answers one request, as it is told, after the head of its answer."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        path = str(Path(folder) / "engine.sock")
        listener.bind(path)
        listener.listen()
        opened: list[Stream] = []

        def begin(answer: Callable[[socket.socket], None]) -> Stream:
            def run() -> None:
                with listener.accept()[0] as connection:
                    while b"\r\n\r\n" not in connection.recv(65536):
                        pass
                    answer(connection)

            threading.Thread(target=run, daemon=True).start()
            opened.append(Stream(Address(f"unix://{path}", "the test"), frames))
            assert opened[0].begin()
            opened[0].open("/exec/1/start", {})
            return opened[0]

        yield begin
        for each in opened:
            each.close()


HEAD = b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n"


def test_output_that_comes_with_the_head_of_the_answer_is_not_lost(serve: Serve, frames: Frames) -> None:
    stream = serve(lambda connection: connection.sendall(HEAD + frame(1, b"quick") + frame(2, b"wrong")))

    stream.run(None, lambda: False)

    assert (frames.stdout, frames.stderr) == (b"quick", b"wrong")


def test_a_command_that_never_begins_has_opened_nothing(frames: Frames) -> None:
    before = os.listdir("/proc/self/fd")
    stream = Stream(Address("unix:///nowhere", "the test"), frames)
    stream.stop()

    assert not stream.begin()
    assert os.listdir("/proc/self/fd") == before


def test_output_that_comes_after_the_engine_has_called_the_command_ended_is_not_lost(
    serve: Serve, frames: Frames
) -> None:
    asked = threading.Event()

    def late(connection: socket.socket) -> None:
        connection.sendall(HEAD)
        asked.wait(60)
        connection.sendall(frame(1, b"late"))

    def ended() -> bool:
        asked.set()
        return True

    serve(late).run(None, ended)

    assert frames.stdout == b"late"


@given(
    parts=st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=20),
    cuts=st.lists(st.integers(1, 50), max_size=60),
)
def test_frames_are_put_together_however_they_were_cut(parts: list[tuple[int, bytes]], cuts: list[int]) -> None:
    data = b"".join(frame(stream, content) for stream, content in parts)
    frames = Frames(10_000)

    for size in [*cuts, len(data)]:
        frames.feed(data[:size])
        data = data[size:]

    assert frames.stdout == b"".join(content for stream, content in parts if stream == 1)
    assert frames.stderr == b"".join(content for stream, content in parts if stream == 2)
    assert frames.whole and frames.full is None


@given(sizes=st.lists(st.integers(0, 30), min_size=1, max_size=10), limit=st.integers(1, 100))
def test_no_more_than_the_limit_is_kept_and_the_first_full_stream_is_named(sizes: list[int], limit: int) -> None:
    frames = Frames(limit)

    for size in sizes:
        frames.feed(frame(2, b"x" * size))

    assert len(frames.stderr) == min(sum(sizes), limit)
    assert frames.full == (2 if sum(sizes) > limit else None)

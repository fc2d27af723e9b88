"""Commands in pods that are made of processes."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import struct
import termios
from collections.abc import AsyncIterator, Callable

from proctor_testkit.kube._backing import Execution

__all__ = ["ProcessExecution", "cannot_start", "transport_of"]

_PIECE = 1 << 15


class ProcessExecution(Execution):
    """A command whose input and output are pipes, or one end of a terminal."""

    def __init__(self, process: asyncio.subprocess.Process, terminal: int) -> None:
        self._process = process
        self._terminal = terminal
        self._pieces: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue(8)
        loop = asyncio.get_running_loop()
        if terminal >= 0:
            os.set_blocking(terminal, False)
            self._readers = [loop.create_task(self._read_terminal())]
        else:
            assert process.stdout is not None and process.stderr is not None
            pipes = ((1, process.stdout), (2, process.stderr))
            self._readers = [loop.create_task(self._read(channel, pipe)) for channel, pipe in pipes]

    async def write(self, data: bytes) -> None:
        if self._terminal >= 0:
            loop = asyncio.get_running_loop()
            with contextlib.suppress(OSError):  # nobody reads it any more
                while data:
                    await self._ready(loop.add_writer, loop.remove_writer)
                    data = data[os.write(self._terminal, data) :]
        elif (pipe := self._process.stdin) is not None:
            with contextlib.suppress(ConnectionError):
                pipe.write(data)
                await pipe.drain()

    async def end_input(self) -> None:
        if self._terminal >= 0:
            await self.write(b"\x04")
        elif self._process.stdin is not None:
            self._process.stdin.close()

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        ended = 0
        while ended < len(self._readers):
            channel, data = await self._pieces.get()
            if data:
                yield channel, data
            else:
                ended += 1

    async def wait(self) -> int:
        code = await self._process.wait()
        return 128 - code if code < 0 else code

    async def resize(self, columns: int, rows: int) -> None:
        if self._terminal >= 0:
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def leave(self) -> None:
        for reader in self._readers:
            reader.cancel()
        if self._terminal >= 0:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._terminal)
            loop.remove_writer(self._terminal)
            os.close(self._terminal)
            self._terminal = -1
        # Not the transport itself, which would end the command.
        for number in (0, 1, 2):
            if (pipe := transport_of(self._process).get_pipe_transport(number)) is not None:
                pipe.close()

    async def _read(self, channel: int, pipe: asyncio.StreamReader) -> None:
        while data := await pipe.read(_PIECE):
            await self._pieces.put((channel, data))
        await self._pieces.put((channel, b""))

    async def _ready(self, add: Callable[..., object], remove: Callable[[int], object]) -> None:
        """Wait until the terminal can be read, or written."""
        event, number = asyncio.Event(), self._terminal
        add(number, event.set)
        try:
            await event.wait()
        finally:
            if self._terminal == number:  # else it is closed, and its number may be another file's
                remove(number)

    async def _read_terminal(self) -> None:
        with contextlib.suppress(OSError):  # at the end of the last process a terminal cannot be read
            loop = asyncio.get_running_loop()
            while True:
                await self._ready(loop.add_reader, loop.remove_reader)
                if not (data := os.read(self._terminal, _PIECE)):
                    break
                await self._pieces.put((1, data))
        await self._pieces.put((1, b""))


def cannot_start(name: str, error: OSError) -> str:
    """What a container's runtime says of a command that could not be started."""
    why = "executable file not found in $PATH" if isinstance(error, FileNotFoundError) else error.strerror
    return f'exec: "{name}": {why}: unknown'


def transport_of(process: asyncio.subprocess.Process) -> asyncio.SubprocessTransport:
    """What holds the pipes of a process."""
    return process._transport  # type: ignore[attr-defined,no-any-return]  # a Process does not show it

"""Pods of processes of this machine, for where there is no engine or there are hundreds of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import shutil
import signal
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from proctor_testkit.kube._backing import Backing, CommandError, Container, Ended, Execution, Launch, StartError
from proctor_testkit.kube._place import MARK, Place, end_marked
from proctor_testkit.kube._process_exec import ProcessExecution, cannot_start, transport_of

__all__ = ["ProcessBacking"]

_PIECE = 1 << 15
_LOOK = 0.02  # seconds between looks at a log that is followed


class ProcessBacking(Backing):
    """Each container is a process with a private folder as its working directory; all images are this machine.

    A container without a command does nothing until it is stopped.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._containers: list[_ProcessContainer] = []
        self._sweeper = _Sweeper()

    async def open(self) -> None:
        """The place is ready."""

    async def close(self) -> None:
        for container in self._containers:
            container.kill()
        await self._sweeper.kill(f"{self._place.name}/")
        await asyncio.gather(*(container.reap() for container in self._containers))

    async def pull(self, image: str) -> None:
        """All images are there."""

    async def create(self, launch: Launch) -> Container:
        number = len(self._containers)
        folder = self._place.folder / f"{launch.pod}-{launch.name}-{number}"
        folder.mkdir()
        (folder / "work").mkdir()
        for path, name in launch.shared.items():
            volume = self._place.folder / f"{launch.pod}-volume-{name}"
            volume.mkdir(exist_ok=True)
            place = folder / "work" / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(volume)
        for path, data in launch.files.items():
            place = folder / "work" / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        made = _ProcessContainer(
            f"{self._place.name}/{launch.pod}/{launch.name}/{number}/", folder, launch, self._sweeper
        )
        self._containers.append(made)
        return made


class _ProcessContainer(Container):
    address = "127.0.0.1"

    def __init__(self, name: str, folder: Path, launch: Launch, sweeper: _Sweeper) -> None:
        self.id = name
        self._sweeper = sweeper
        self._folder = folder
        self._launch = launch
        self._work = folder / "work" / launch.directory.lstrip("/")
        self._log = folder / "log"
        self._process: asyncio.subprocess.Process | None = None
        self._ended = asyncio.Event()
        self._commands: list[asyncio.subprocess.Process] = []
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
        about = {"HOME": str(self._work), "HOSTNAME": launch.hostname, MARK: name}
        self._environment = {**kept, **about, **launch.environment}

    async def start(self) -> None:
        self._work.mkdir(parents=True, exist_ok=True)
        command = [*(self._launch.command or []), *(self._launch.arguments or [])] or ["sleep", "infinity"]
        log = self._log.open("ab")
        try:
            self._process = await self._started(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._work,
                env=self._environment,
                start_new_session=True,
            )
        except OSError as error:
            self._ended.set()
            raise StartError(cannot_start(command[0], error)) from None
        finally:
            log.close()

    async def _started(self, *command: str, **how: Any) -> asyncio.subprocess.Process:
        """A process, remembered also if this is cancelled while it starts: asyncio would leave its pipes open."""
        starting = asyncio.ensure_future(asyncio.create_subprocess_exec(*command, **how))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                self._commands.append(await starting)
            raise

    async def wait(self) -> Ended:
        if self._process is None:
            await self._ended.wait()
            return Ended(137, "Error")
        code = await self._process.wait()
        self._ended.set()
        await self._end_all()
        code = 128 - code if code < 0 else code
        return Ended(code, "Error" if code else "Completed")

    async def stop(self, grace: float) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), grace)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def remove(self) -> None:
        self._ended.set()
        await self._end_all()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _end_all(self) -> None:
        """End every process of the container, as the end of a real one's first process does."""
        self.kill()
        await self._sweeper.kill(self.id)
        await self.reap()

    def kill(self) -> None:
        """End the process groups of the container that are known by number."""
        for process in (self._process, *self._commands):
            if process is not None and process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    async def reap(self) -> None:
        """Wait until its processes, which were killed, are gone."""
        for process in (self._process, *self._commands):
            if process is not None:
                await process.wait()
                transport_of(process).close()

    async def logs(
        self, *, follow: bool, tail: int | None, since: float, timestamps: bool
    ) -> AsyncGenerator[bytes, None]:
        if not self._log.exists():
            return
        with self._log.open("rb") as log:
            if tail is not None:
                lines = log.read().splitlines(keepends=True)
                yield b"".join(lines[len(lines) - tail :] if tail else [])
            while True:
                ended = self._ended.is_set()
                while piece := log.read(_PIECE):
                    yield piece
                if ended or not follow:
                    return
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), _LOOK)

    async def exec(self, command: Sequence[str], *, stdin: bool, tty: bool) -> Execution:
        if self._ended.is_set():
            raise CommandError("container is not running")
        terminal, theirs = pty.openpty() if tty else (-1, -1)
        streams = [theirs] * 3 if tty else [asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL, -1, -1]
        before = ["setsid", "--ctty"] if tty and shutil.which("setsid") else []
        try:
            process = await self._started(
                *before,
                *command,
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                cwd=self._work,
                env=self._environment,
                start_new_session=not tty,
            )
        except OSError as error:
            if tty:
                os.close(terminal)
            raise CommandError(cannot_start(command[0], error)) from None
        finally:
            if tty:
                os.close(theirs)
        self._commands.append(process)
        return ProcessExecution(process, terminal)


class _Sweeper:
    """Looks through the processes of the machine once for all containers that end at the same time."""

    def __init__(self) -> None:
        self._marks: set[str] = set()
        self._lock = asyncio.Lock()

    async def kill(self, mark: str) -> None:
        """End what is left of a container."""
        self._marks.add(mark)
        async with self._lock:
            if mark in self._marks:  # else the look that has just ended was for it, too
                marks, self._marks = self._marks, set()
                await asyncio.to_thread(end_marked, marks)

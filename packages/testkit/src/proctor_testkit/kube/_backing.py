"""What stands behind a pod of the fake Kubernetes: what a container and a command in it must be able to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Backing", "CommandError", "Container", "Ended", "Execution", "Launch", "PullError", "StartError"]


class PullError(Exception):
    """The image is not there."""


class StartError(Exception):
    """The container cannot be made or started."""


class CommandError(Exception):
    """The command cannot be started: there is no such file, or it cannot be run."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a container came to its end."""

    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class Launch:
    """A container that is to be made.

    Attributes:
        pod: the uid of its pod.
        network: False if a policy forbids all of it.
        joined: the container of the same pod whose network it shares.
        hosts: names and the addresses that they stand for.
        files: what is mounted from configuration and secrets, by absolute path.
        shared: the names of the pod's own volumes, by the absolute path where each is mounted.
    """

    pod: str
    name: str
    image: str
    command: Sequence[str] | None
    arguments: Sequence[str] | None
    environment: Mapping[str, str]
    directory: str
    user: str
    cpus: float
    memory: int
    security: Mapping[str, Any]
    network: bool
    hostname: str
    joined: Container | None = None
    hosts: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)


class Execution(ABC):
    """A command that runs in a container. It runs on when nobody listens any more, as the real ones do."""

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Give it input; dropped if it reads none any more."""

    @abstractmethod
    async def end_input(self) -> None:
        """Say that no input follows."""

    @abstractmethod
    def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """What it writes, with 1 for stdout and 2 for stderr, to its end."""

    @abstractmethod
    async def wait(self) -> int:
        """Its exit code, after its output."""

    @abstractmethod
    async def resize(self, columns: int, rows: int) -> None:
        """Set the size of its terminal."""

    @abstractmethod
    def leave(self) -> None:
        """Listen no more."""


class Container(ABC):
    """A container that was made; ``id`` is the backing's name for it, ``address`` its IP."""

    id: str
    address: str = ""

    @abstractmethod
    async def start(self) -> None:
        """Start it.

        Raises:
            StartError: if that is impossible.
        """

    @abstractmethod
    async def wait(self) -> Ended:
        """Wait for its end."""

    @abstractmethod
    async def stop(self, grace: float) -> None:
        """Ask it to end; after so many seconds end it."""

    @abstractmethod
    async def remove(self) -> None:
        """Take away all of it, processes and files."""

    @abstractmethod
    def logs(self, *, follow: bool, tail: int | None, since: float, timestamps: bool) -> AsyncGenerator[bytes, None]:
        """What it wrote; with ``follow`` to its end. ``since`` is a time in seconds of the epoch."""

    @abstractmethod
    async def exec(self, command: Sequence[str], *, stdin: bool, tty: bool) -> Execution:
        """Start a command in it.

        Raises:
            CommandError: if it cannot be started.
        """


class Backing(ABC):
    """Where containers come from."""

    @abstractmethod
    async def open(self) -> None:
        """Make ready, and take away what fakes left that were killed."""

    @abstractmethod
    async def close(self) -> None:
        """Take away all that is left."""

    @abstractmethod
    async def pull(self, image: str) -> None:
        """See that the image is there.

        Raises:
            PullError: if it is not.
        """

    @abstractmethod
    async def create(self, launch: Launch) -> Container:
        """Make a container.

        Raises:
            StartError: if it cannot be made.
        """

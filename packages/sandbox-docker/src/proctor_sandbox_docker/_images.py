"""Images: there already, pulled, or built; once each, however many samples, tasks and runs want one at a time."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import anyio
from anyio import to_thread
from docker import APIClient
from docker.errors import APIError
from docker.utils import parse_repository_tag

from proctor.contracts import PrerequisiteError
from proctor.monitor import doing, runtime_dir
from proctor_sandbox_docker._build import build_image, image_id
from proctor_sandbox_docker._context import open_context
from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker._progress import PullProgress, error_of
from proctor_sandbox_docker.compose import BuildSpec, ProjectSpec, ServiceSpec

__all__ = ["Image", "Images"]

_SECONDS = 3600.0
"""That a build or a pull may take."""
_REMEMBERED_SECONDS = 60.0
"""A failure holds so long for all that ask; then it is tried again, since a network comes and goes."""
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Image:
    """An image that is there.

    Args:
        name: by which the engine knows it.
        working_dir: that it says; ``None`` if it says nothing, or the root of all files.
    """

    name: str
    working_dir: str | None


class Images:
    """The images of one run.

    Args:
        engine: that has them.
        clock: seconds, for how long failures are remembered.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._flights: dict[str, anyio.Lock] = {}
        self._ready: dict[str, Image] = {}
        self._failed: dict[str, tuple[float, str]] = {}

    async def prepare(self, project: ProjectSpec) -> None:
        """Have the images of all services that say by now which one they want.

        Raises:
            PrerequisiteError: one can't be had; the message says why, and what to do.
        """
        for service in project.services:
            if service.image is not None or service.build is not None:
                await self.ready(service)

    async def ready(self, service: ServiceSpec) -> Image:
        """The image of ``service``, which is there now: found, pulled or built.

        Raises:
            PrerequisiteError: it can't be had; the message says why, and what to do.
        """
        key = repr((service.image, service.build, service.platform))
        if (image := self._ready.get(key)) is not None:
            return image
        async with self._flights.setdefault(key, anyio.Lock()):
            if (image := self._ready.get(key)) is None:
                self._raise_remembered(key)
                try:
                    image = await self._look_into(await self._have(service))
                except PrerequisiteError as error:
                    self._failed[key] = (self._clock(), str(error))
                    raise
                self._ready[key] = image
        return image

    def forget(self) -> None:
        """Look again at each image: somebody has removed one."""
        self._ready.clear()

    def _raise_remembered(self, key: str) -> None:
        when, text = self._failed.get(key, (0.0, ""))
        if text and self._clock() - when < _REMEMBERED_SECONDS:
            raise PrerequisiteError(text)

    async def _look_into(self, name: str) -> Image:
        found = await self._engine.call("look into an image", lambda client: client.inspect_image(name))
        folder = (found.get("Config") or {}).get("WorkingDir") or "/"
        return Image(name, None if folder == "/" else folder)

    async def _have(self, service: ServiceSpec) -> str:
        if service.build is not None:
            return await self._built(service, service.build)
        assert service.image is not None
        if await self._id(service.image) is None:
            await self._pull(service, service.image)
        return service.image

    async def _id(self, name: str) -> str | None:
        return await self._engine.call("look for an image", lambda client: image_id(client, name))

    async def _pull(self, service: ServiceSpec, image: str) -> None:
        where = f"service {service.name!r}: the image {image} is not there"
        if service.x_local:
            raise PrerequisiteError(
                f"sandbox docker, {where}, and x-local says that it is not to be pulled: build it "
                f"(docker build -t {image} FOLDER) or load it (docker load)"
            )
        async with self._alone(image):
            if await self._id(image) is not None:  # another run has pulled it meanwhile
                return
            with doing("sandbox", f"pull {image}"):
                try:
                    await self._engine.call(
                        f"pull {image}", lambda client: _pull(client, image, service.platform), seconds=_SECONDS
                    )
                except _PullError as error:
                    raise PrerequisiteError(
                        f"sandbox docker, {where}, and can't be pulled: {error}. Check the name, `docker login` where "
                        f"it needs one, or have it here: docker pull {image}, docker build -t {image} FOLDER"
                    ) from error

    async def _built(self, service: ServiceSpec, build: BuildSpec) -> str:
        context = await to_thread.run_sync(open_context, build, service.platform)
        tag = await self._engine.call("look for an image", lambda client: context.tag(lambda n: image_id(client, n)))
        if await self._id(tag) is None:
            async with self._alone(tag):
                if await self._id(tag) is None:
                    with doing("sandbox", f"build the image of {service.name}"):
                        tag = await self._engine.call(
                            "build an image",
                            lambda client: build_image(client, context, tag, service, _SECONDS),
                            seconds=_SECONDS,
                        )
        if service.image is not None:
            repository, own = parse_repository_tag(service.image)
            await self._engine.call("tag an image", lambda client: client.tag(tag, repository, own or "latest"))
        return tag

    @asynccontextmanager
    async def _alone(self, what: str) -> AsyncIterator[None]:
        """Keep other runs on this machine from having the same image made at the same time."""
        name = blake2b(f"{self._engine.address.url} {what}".encode(), digest_size=8).hexdigest()
        async with file_lock(f"docker-image-{name}.lock"):
            yield


@asynccontextmanager
async def file_lock(name: str) -> AsyncIterator[None]:
    """Hold a lock among the processes of this user on this machine."""
    file = await to_thread.run_sync(lambda: (runtime_dir() / name).open("ab"))
    try:
        while not _locked(file):  # noqa: ASYNC110  # another process has it: there is no event to wait for
            await anyio.sleep(_POLL_SECONDS)
        yield
    finally:
        file.close()


def _locked(file: Any) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows: several runs may build the same, and the engine's cache makes it cheap
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class _PullError(Exception):
    """What the engine says of a pull that failed on the way."""


def _pull(client: APIClient, image: str, platform: str | None) -> None:
    repository, tag = parse_repository_tag(image)
    progress = PullProgress(image)
    try:
        for event in client.pull(repository, tag=tag or "latest", stream=True, decode=True, platform=platform):
            if error := error_of(event):
                raise _PullError(error)
            progress.see(event)
    except APIError as error:
        raise _PullError(error.explanation or error) from error
    progress.end()

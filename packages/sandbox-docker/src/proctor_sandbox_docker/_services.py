"""A sample's services: started in their order, waited for, and found out about when one does not stay."""

from __future__ import annotations

from dataclasses import replace

import anyio
from docker.errors import APIError, ImageNotFound

from proctor.contracts import SandboxBrokenError
from proctor_sandbox_docker._box import Container
from proctor_sandbox_docker._container import WORKING_DIR, Place, create_and_start
from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker._images import Image, Images
from proctor_sandbox_docker._made import Made
from proctor_sandbox_docker._names import container_name
from proctor_sandbox_docker._networks import Networks, make_volumes
from proctor_sandbox_docker._watch import Watch
from proctor_sandbox_docker.compose import ProjectSpec, ServiceSpec, waits_for

__all__ = ["READY_SECONDS", "start_project"]

READY_SECONDS = 600.0
"""That services have to become ready."""


async def start_project(
    engine: Engine, images: Images, networks: Networks, project: ProjectSpec, made: Made
) -> dict[str, Container]:
    """Start all that a sample gets, and wait until its services run, and are healthy where they have a check for it.

    What was made is noted in ``made``, whatever happens, so that it can be taken away.

    Args:
        engine: that has it.
        images: of the run.
        networks: of the run.
        project: what the sample gets.
        made: where it is noted.

    Returns:
        The containers that run, by their services; the default one first.

    Raises:
        SandboxBrokenError: a service can't start, ends or is not well; the message names it, with its last lines.
        UsageError: something that should be there already is not.
        PrerequisiteError: an image can't be had.
    """
    ready = {service.name: await images.ready(service) for service in project.services}
    place = Place(networks=await networks.make(project, made), volumes=await make_volumes(engine, project, made))
    start = _Start(engine, images, made, place, project)
    with anyio.move_on_after(READY_SECONDS) as scope:
        try:
            async with anyio.create_task_group() as group:
                for service in project.services:
                    group.start_soon(start.service, service, ready[service.name])
        except BaseExceptionGroup as error:
            raise _first(error) from error
    if scope.cancelled_caught:
        raise SandboxBrokenError(
            f"Docker: services were not ready after {READY_SECONDS:g} s: {', '.join(start.late())}"
        )
    if len(project.services) > 1:  # while others were waited for, one that ran may have ended
        await start.look_again()
    running = start.running
    return {name: running[name] for name in (project.default, *(name for name in running if name != project.default))}


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error of a group: one service's, which stopped the others; a cancellation goes before all."""
    found: list[BaseException] = []
    rest: list[BaseException] = [group]
    while rest:
        error = rest.pop(0)
        if isinstance(error, BaseExceptionGroup):
            rest += error.exceptions
        else:
            found.append(error)
    return next((error for error in found if not isinstance(error, Exception)), found[0])


class _Start:
    """The start of one sample's services.

    Args:
        engine: that has them.
        images: of the run.
        made: where containers are noted.
        place: what surrounds them.
        project: what the sample gets.
    """

    def __init__(self, engine: Engine, images: Images, made: Made, place: Place, project: ProjectSpec) -> None:
        self._engine = engine
        self._images = images
        self._made = made
        self._place = place
        self._project = project
        self._containers: dict[str, Container] = {}
        self._watch = Watch(engine, project.default, self._containers)
        self._started = {service.name: anyio.Event() for service in project.services}
        self.running: dict[str, Container] = {}

    def late(self) -> list[str]:
        """Services that are not ready."""
        return [name for name in self._started if name not in self.running]

    async def look_again(self) -> None:
        """Find out whether what ran goes on."""
        for name in list(self.running):
            if not await self._watch.settled(name):
                del self.running[name]

    async def service(self, service: ServiceSpec, image: Image) -> None:
        """Start one service when those that it waits for are there, and wait until it is there itself."""
        for name, condition in waits_for(service).items():
            await self._started[name].wait()
            await self._watch.reached(name, condition, f" (service {service.name!r} waits for it)")
        await self._run(service, image)
        self._started[service.name].set()
        if await self._watch.settled(service.name):
            self.running[service.name] = self._containers[service.name]

    async def _run(self, service: ServiceSpec, image: Image) -> None:
        mode = service.network_mode or ""
        place = replace(self._place, working_dir=image.working_dir or WORKING_DIR)
        if mode.startswith("service:"):
            place = replace(place, network_mode=f"container:{self._containers[mode.removeprefix('service:')].id}")
        container = await self._made_anew(replace(service, image=image.name), place)
        self._made.containers.append(container)
        self._containers[service.name] = container

    async def _made_anew(self, service: ServiceSpec, place: Place) -> Container:
        """A container of ``service``; an image that somebody removed meanwhile is had again, once."""
        for again in (True, False):
            name = container_name(self._made.owner, service.name)
            try:
                async with self._engine.starting:
                    return await create_and_start(self._engine, service, name, self._made.labels, place)
            except ImageNotFound as error:
                if not again:
                    raise _refused(service, error) from error
            except APIError as error:
                raise _refused(service, error) from error
            self._images.forget()
            image = await self._images.ready(self._project.service(service.name))
            service = replace(service, image=image.name)
        raise AssertionError("not reached")


def _refused(service: ServiceSpec, error: APIError) -> SandboxBrokenError:
    said = str(error.explanation or error)
    if "port is already allocated" in said or "address already in use" in said:
        said += " (another sample may have it: name only the container's port, and any free one of the host is taken)"
    return SandboxBrokenError(f"Docker: service {service.name!r} did not start: {said}")

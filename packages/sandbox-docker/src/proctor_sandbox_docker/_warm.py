"""The warm pool: containers that are started before their samples come. Each serves one sample and is removed."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import anyio
from docker import APIClient
from docker.errors import APIError, NotFound

from proctor.concurrency import Detached
from proctor.contracts import SandboxBrokenError, SandboxOwner, UsageError
from proctor.sandbox import demand, sandbox_owner
from proctor_sandbox_docker._box import Container
from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker._made import Made
from proctor_sandbox_docker._names import given_name
from proctor_sandbox_docker.compose import ProjectSpec

__all__ = ["LEFT", "WARM", "WarmPool", "warm_size", "why_not_warm"]

WARM = "PROCTOR_DOCKER_WARM"
"""The variable that says how many containers are kept ready."""
LEFT = "containers may be left; `proctor sandbox cleanup docker` takes them away, once this run is over"
_STOPPING = 5.0
_CLOSE_SECONDS = 50.0
"""That removing all of a task's may take."""

Running: TypeAlias = dict[str, Container]
StartProject: TypeAlias = Callable[[ProjectSpec, Made], Coroutine[Any, Any, Running]]
Demand: TypeAlias = Callable[[], int | None]

_log = logging.getLogger("proctor.sandbox")


def warm_size(said: str) -> int:
    """How many containers ``said`` asks to keep ready; nothing said is none.

    Raises:
        UsageError: it is no number of containers.
    """
    text = said.strip()
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(
            f"{WARM}={said}: it says how many containers are kept ready: a number such as 4, or 0 for none"
        )
    return int(text)


def why_not_warm(project: ProjectSpec) -> str:
    """Why no container for a sample of ``project`` can be started before the sample is known; empty if it can."""
    if len(project.services) > 1:
        return "its samples have several services"
    [service] = project.services
    if service.addresses or any(project.networks[name].external is None for name in service.networks):
        return "each of its samples has a network or an address of its own"
    if any(port.published is not None for port in service.ports):
        return "it asks for a fixed port of the host, which one container at a time can have"
    return ""


@dataclass(slots=True, eq=False)
class _Warm:
    """A container that is kept ready, or is on its way there."""

    made: Made
    start: Detached[Running]


@dataclass(slots=True, eq=False)
class _Kind:
    """What is kept ready of one configuration of a task. It outlives samples, so it holds nothing of any.

    Args:
        task: its name.
        project: what each of its samples gets.
        owner: whose containers are before their samples are known.
        ready: the oldest first.
        lost: that did not start, or did not live until a sample came; none is started in their place.
        to_come: how many samples will still want one, as far as those that have come can tell.
    """

    task: str
    project: ProjectSpec
    owner: SandboxOwner
    ready: deque[_Warm] = field(default_factory=deque)
    lost: int = 0
    to_come: Demand = lambda: 0


class WarmPool:
    """Keeps containers ready. There are never more than its size, and one is started for each that a sample took.

    So of all that it starts, no more than its size serve no sample, whatever goes wrong; if it is known how many
    samples are to come, none is left over.

    Args:
        engine: that has them.
        start: starts what a sample gets, and notes what it makes.
        tell: says a thing once.
    """

    def __init__(self, engine: Engine, start: StartProject, tell: Callable[[str], object]) -> None:
        self._engine = engine
        self._start = start
        self._tell = tell
        self._size = 0
        self._held = 0
        self._kinds: list[_Kind] = []
        self._going: set[Detached[None]] = set()

    def keep(self, task: str, project: ProjectSpec, size: int) -> None:
        """From now on keep ``size`` containers ready in all, some of them for samples of ``task``; call in its start.

        They are started when the first sample has its own, which they would only hold up.
        """
        self._size = size
        if self._kind(task, project) is None:
            self._kinds.append(_Kind(task, project, sandbox_owner()))

    async def take(self, task: str, project: object) -> tuple[Made, Running] | None:
        """A container that is ready, or the next that will be, for the sample at hand; ``None`` if there is none."""
        kind = self._kind(task, project)
        while kind is not None and kind.ready:
            one = kind.ready.popleft()
            try:
                running = await self._given(one)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await self._end(one)
                raise
            if running is not None:
                self._held -= 1
                return one.made, running
            kind.lost += 1
            await self._end(one)
        return None

    async def _given(self, one: _Warm) -> Running | None:
        """What is handed out, under the name of its sample; ``None`` if it is not fit for that."""
        await one.start.done.wait()
        if one.start.failed is not None:
            self._tell_lost(f"did not start: {one.start.failed}")
            return None
        [(service, container)] = one.start.result().items()
        owner = sandbox_owner()
        name = given_name(owner) if owner.sample else container.name
        try:
            state = await self._engine.call("take a container", lambda client: _take(client, container, name))
        except (SandboxBrokenError, APIError) as error:
            state = str(error)
        if state:
            self._tell_lost(f"can't be used any more: {state}")
            return None
        return {service: replace(container, name=name)}

    def _tell_lost(self, what: str) -> None:
        self._tell(f"a container that was kept ready {what}. No other takes its place, and no sample is lost")

    def fill(self, task: str, project: object) -> None:
        """Start what is to be ready for the next samples, in the background; call when a sample has its container."""
        kind = self._kind(task, project)
        if kind is None:
            return
        kind.to_come = _greater(kind.to_come, demand())
        self._let_go_of_others(kind)
        self._top_up(kind)
        if not kind.ready and kind.to_come() == 0:
            self._kinds.remove(kind)

    def _top_up(self, kind: _Kind) -> None:
        room, to_come = self._size - self._held - kind.lost, kind.to_come()
        for _ in range(room if to_come is None else min(room, to_come - len(kind.ready))):
            made = Made.begin(kind.owner, ready=True)
            try:
                # It is no work of the sample that has just come, of whose context it sees nothing.
                start = Detached(partial(self._start, kind.project, made), Context())
            except RuntimeError:  # nothing lives on here beside its caller: this is no run
                return
            self._held += 1
            kind.ready.append(_Warm(made, start))

    def _let_go_of_others(self, kind: _Kind) -> None:
        """Remove what was kept ready for samples of others that will not come, to make room for ``kind``."""
        for other in [one for one in self._kinds if one is not kind and one.ready and one.to_come() == 0]:
            self._kinds.remove(other)
            while other.ready:
                going = Detached(partial(self._make_room, other.ready.popleft(), kind))
                self._going.add(going)
                going.on_end(self._going.discard)

    async def _make_room(self, stale: _Warm, kind: _Kind) -> None:
        await self._end(stale)
        if kind in self._kinds:
            self._top_up(kind)

    async def close(self, task: str) -> None:
        """Remove all that is kept ready for ``task``; nothing is started for it any more."""
        kinds = [kind for kind in self._kinds if kind.task == task]
        self._kinds = [kind for kind in self._kinds if kind.task != task]
        with anyio.move_on_after(_CLOSE_SECONDS) as scope:
            async with anyio.create_task_group() as group:
                for one in (one for kind in kinds for one in kind.ready):
                    group.start_soon(self._end, one)
                for going in self._going:
                    group.start_soon(going.done.wait)
        if scope.cancelled_caught:
            self._going.clear()  # another task does not wait for them once more
            late = f"removing those that were kept ready took more than {_CLOSE_SECONDS:g} s"
            _log.warning("docker: %s: %s", late, LEFT)

    async def _end(self, one: _Warm) -> None:
        """Remove one, however far it is."""
        try:
            await one.start.stop(_STOPPING)
            await one.made.remove(self._engine)
        except Exception as error:
            _log.warning("docker: a container that was kept ready could not be removed (%s): %s", error, LEFT)
        finally:
            self._held -= 1

    def _kind(self, task: str, project: object) -> _Kind | None:
        return next((kind for kind in self._kinds if kind.task == task and kind.project == project), None)


def _greater(one: Demand, other: Demand) -> Demand:
    """The one that tells of more: of two samples that get the same, one may know of itself only."""
    few, many = one(), other()
    return one if many is not None and (few is None or few > many) else other


def _take(client: APIClient, container: Container, name: str) -> str:
    """Give it its name; returns what keeps it from being used. Blocks."""
    try:
        state = client.inspect_container(container.id)["State"]
        health = (state.get("Health") or {}).get("Status")
        if state.get("Status") != "running" or health == "unhealthy":
            return f"it is {health if state.get('Status') == 'running' else state.get('Status')}"
        if name != container.name:
            client.rename(container.id, name)
    except NotFound:
        return "somebody removed it"
    return ""

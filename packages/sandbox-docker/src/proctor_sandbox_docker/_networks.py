"""A sample's networks and volumes, and the wait for a free range of addresses."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any

import anyio
from docker import APIClient
from docker.errors import APIError, NotFound
from docker.types import IPAMConfig, IPAMPool

from proctor.contracts import SandboxBrokenError, UsageError
from proctor.limits import sample_limits
from proctor.monitor import doing
from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker._made import Made, remove_network
from proctor_sandbox_docker.compose import NetworkSpec, ProjectSpec, VolumeSpec

__all__ = ["Networks", "make_volumes"]

_log = logging.getLogger("proctor.sandbox")
_NO_POOL = (
    "non-overlapping ipv4 address pool",
    "pool overlaps",
    "address pools have been fully subnetted",
    "could not find free subnet",
)
_POLL_SECONDS = 0.5
KEEP = "proctor.keep"
_PATIENCE_SECONDS = 120.0
"""How long a range of addresses is waited for while no sample of this run holds one that it could give back."""
FIX = (
    "give the engine more, smaller ranges in its daemon.json, such as "
    '"default-address-pools": [{"base": "10.200.0.0/16", "size": 26}] (1024 networks), '
    "or have fewer samples at once (--max-sandboxes)"
)


class Networks:
    """Makes the networks of samples; one driver has one of these.

    Args:
        engine: that they are made in.
        clock: seconds, for how long a free range of addresses is waited for.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._turn = anyio.Lock()
        self._held: set[str] = set()
        """Projects that have networks, and will give them back."""
        self._told = False

    async def make(self, project: ProjectSpec, made: Made) -> dict[str, str]:
        """Make the networks of a sample, all or none of them.

        While the engine has no range of addresses left, those of other samples are waited for; that is no work of the
        sample.

        Args:
            project: what the sample gets.
            made: where those that were made are noted.

        Returns:
            Their ids, by the project's names; also of those that were there already.

        Raises:
            UsageError: one that should be there already is not.
            SandboxBrokenError: the engine can't make one, or nobody gives back a range of addresses.
        """
        found = {}
        for spec in project.networks.values():
            if spec.external is not None:
                found[spec.name] = await self._existing(spec.external)
        own = [spec for spec in project.networks.values() if spec.external is None]
        if own:
            # One after the other: samples that each hold a part of what they need would wait for each other.
            async with self._turn:
                found.update(await self._all_or_wait(own, made))
            if KEEP not in made.labels:
                self._held.add(made.project)
        return found

    def gone(self, project: str) -> None:
        """Take note that a sample's networks are removed."""
        self._held.discard(project)

    async def _all_or_wait(self, specs: list[NetworkSpec], made: Made) -> dict[str, str]:
        found = await self._try(specs, made)
        if found is not None:
            return found
        limits = sample_limits()
        with contextlib.nullcontext() if limits is None else limits.pause(), doing("sandbox", "wait for a network"):
            return await self._wait(specs, made)

    async def _wait(self, specs: list[NetworkSpec], made: Made) -> dict[str, str]:
        if not self._told:
            self._told = True
            _log.warning("docker: no range of addresses is free for a network; waiting for other samples. %s", FIX)
        since = self._clock()
        while True:
            await anyio.sleep(_POLL_SECONDS)
            found = await self._try(specs, made)
            if found is not None:
                return found
            if self._held:
                since = self._clock()
            elif self._clock() - since > _PATIENCE_SECONDS:
                raise SandboxBrokenError(
                    f"Docker: no range of addresses is free for the sample's networks, and none was given back in "
                    f"{_PATIENCE_SECONDS:g} s: `docker network ls` shows who has them; `docker network prune` removes "
                    f"what nobody uses, or {FIX}"
                )

    async def _try(self, specs: list[NetworkSpec], made: Made) -> dict[str, str] | None:
        """The networks; ``None``, and none of them, when addresses have run out."""
        found: dict[str, str] = {}
        for spec in specs:
            id = await self._make(spec, made)
            if id is None:
                for other in found.values():
                    await remove_network(self._engine, other)
                    made.networks.remove(other)
                return None
            made.networks.append(id)
            found[spec.name] = id
        return found

    async def _make(self, spec: NetworkSpec, made: Made) -> str | None:
        pools = [IPAMPool(subnet=subnet) for subnet in spec.subnets]
        name = f"proctor-{made.project}-{spec.name}"

        def make(client: APIClient) -> str | None:
            try:
                found = client.create_network(
                    name,
                    driver=spec.driver or "bridge",
                    options=dict(spec.options) or None,
                    ipam=IPAMConfig(pool_configs=pools) if pools else None,
                    internal=spec.internal,
                    labels=dict(made.labels),
                )
            except APIError as error:
                if _is_exhausted(error):
                    return None
                raise
            return str(found["Id"])

        def drop(client: APIClient, id: str | None) -> None:
            if id is not None:
                with contextlib.suppress(APIError):
                    client.remove_network(id)

        try:
            return await self._engine.call(f"make network {spec.name}", make, dispose=drop)
        except APIError as error:
            raise SandboxBrokenError(f"Docker: network {spec.name}: {error.explanation or error}") from error

    async def _existing(self, name: str) -> str:
        try:
            found = await self._engine.call(f"look at network {name}", lambda client: client.inspect_network(name))
        except NotFound:
            raise UsageError(
                f"sandbox docker: there is no network {name!r}, which is external: docker network create {name}"
            ) from None
        return str(found["Id"])


def _is_exhausted(error: APIError) -> bool:
    text = str(error.explanation or error).lower()
    return any(sign in text for sign in _NO_POOL)


async def make_volumes(engine: Engine, project: ProjectSpec, made: Made) -> dict[str, str]:
    """Make the volumes of a sample.

    Args:
        engine: that they are made in.
        project: what the sample gets.
        made: where those that were made are noted.

    Returns:
        The engine's names, by the project's; also of those that were there already.

    Raises:
        UsageError: one that should be there already is not.
        SandboxBrokenError: the engine can't make one.
    """
    return {spec.name: await _volume(engine, spec, made) for spec in project.volumes.values()}


async def _volume(engine: Engine, spec: VolumeSpec, made: Made) -> str:
    if spec.external is not None:
        name = spec.external
        try:
            await engine.call(f"look at volume {name}", lambda client: client.inspect_volume(name))
        except NotFound:
            raise UsageError(
                f"sandbox docker: there is no volume {name!r}, which is external: docker volume create {name}"
            ) from None
        return name
    own = f"proctor-{made.project}-{spec.name}"

    def make(client: APIClient) -> Any:
        return client.create_volume(own, spec.driver, dict(spec.options) or None, dict(made.labels))

    made.volumes.append(own)  # noted first: removing one that is not there does no harm
    try:
        await engine.call(f"make volume {spec.name}", make)
    except APIError as error:
        raise SandboxBrokenError(f"Docker: volume {spec.name}: {error.explanation or error}") from error
    return own

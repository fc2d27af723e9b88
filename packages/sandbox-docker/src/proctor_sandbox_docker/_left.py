"""What there is of ours in the engine, whichever run made it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import anyio
from docker import APIClient

from proctor.contracts import RunningSandbox, SandboxBrokenError, SandboxOwner
from proctor_sandbox_docker._box import connection_to
from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker._made import PROJECT, READY, remove_container, remove_network, remove_volume
from proctor_sandbox_docker._names import given_owner

__all__ = ["list_left", "remove_left"]

_OURS = "proctor.run"
_NETWORK, _VOLUME = "network/", "volume/"
_AT_ONCE = 4


async def list_left(engine: Engine) -> list[RunningSandbox]:
    """All containers, networks and volumes that have our labels; networks and volumes after the containers."""
    return await engine.call("list sandboxes", lambda client: _find(engine, client))


def _find(engine: Engine, client: APIClient) -> list[RunningSandbox]:
    wanted = {"label": _OURS}
    containers = client.containers(all=True, filters=wanted)
    names = {(each.get("Labels") or {}).get(PROJECT): _name(each) for each in containers}
    found = [_container(engine, each) for each in containers]
    found += [_other(_NETWORK, each, each.get("Created"), names) for each in client.networks(filters=wanted)]
    volumes = client.volumes(filters=wanted).get("Volumes") or ()
    return found + [_other(_VOLUME, each, each.get("CreatedAt"), names) for each in volumes]


def _name(found: dict[str, Any]) -> str:
    return str((found.get("Names") or [found["Id"]])[0]).lstrip("/")


def _whose(labels: Mapping[str, str], name: str, state: str) -> tuple[SandboxOwner | None, str]:
    """The owner, and the state as it is shown: the name of a container that was kept ready tells for which sample."""
    owner = SandboxOwner.from_labels(labels)
    if owner is None or READY not in labels:
        return owner, state
    given = given_owner(name, owner)
    return (owner, f"{state}, kept ready") if given is None else (given, state)


def _container(engine: Engine, found: dict[str, Any]) -> RunningSandbox:
    name = _name(found)
    running = found.get("State") == "running"
    ports = {
        f"{port['PrivatePort']}/{port['Type']}": int(port["PublicPort"])
        for port in found.get("Ports") or ()
        if port.get("PublicPort")
    }
    state = str(found.get("Status") or found.get("State") or "").lower()
    owner, state = _whose(found.get("Labels") or {}, name, state)
    return RunningSandbox(
        id=name,
        owner=owner,
        state=state,
        created=datetime.fromtimestamp(found["Created"], UTC) if isinstance(found.get("Created"), int) else None,
        connection=connection_to(engine, name, ports) if running else None,
    )


def _other(prefix: str, found: dict[str, Any], created: Any, names: Mapping[str | None, str]) -> RunningSandbox:
    labels = found.get("Labels") or {}
    owner, state = _whose(labels, names.get(labels.get(PROJECT), ""), prefix.rstrip("/"))
    return RunningSandbox(
        id=prefix + found["Name"],
        owner=owner,
        state=state,
        created=_time(created),
        connection=None,
    )


def _time(text: Any) -> datetime | None:
    try:
        time = datetime.fromisoformat(str(text)[:19])
    except ValueError:
        return None
    return time.replace(tzinfo=UTC)


async def remove_left(engine: Engine, ids: Sequence[str]) -> list[str]:
    """Remove what ``list_left`` told of, and return when it is gone: containers first, which hold the rest.

    Raises:
        SandboxBrokenError: something is still there.
    """
    removed: list[str] = []
    failed: list[Exception] = []
    at_once = anyio.Semaphore(_AT_ONCE)

    async def remove(id: str) -> None:
        async with at_once:
            try:
                if await _remove(engine, id):
                    removed.append(id)
            except Exception as error:
                failed.append(error)

    for some in _in_order(ids):
        async with anyio.create_task_group() as group:
            for id in some:
                group.start_soon(remove, id)
    if failed:
        raise SandboxBrokenError(f"{len(failed)} of {len(ids)} are still there: {failed[0]}") from failed[0]
    return sorted(removed)


def _in_order(ids: Iterable[str]) -> tuple[list[str], list[str]]:
    others = [id for id in ids if id.startswith((_NETWORK, _VOLUME))]
    return [id for id in ids if id not in others], others


async def _remove(engine: Engine, id: str) -> bool:
    if id.startswith(_NETWORK):
        return await remove_network(engine, id.removeprefix(_NETWORK))
    if id.startswith(_VOLUME):
        return await remove_volume(engine, id.removeprefix(_VOLUME))
    return await remove_container(engine, id)

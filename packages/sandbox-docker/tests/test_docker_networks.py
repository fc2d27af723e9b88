"""When the engine has no range of addresses left: samples wait for each other, or are told what helps."""

from __future__ import annotations

import json
import logging
import secrets
from typing import Any

import anyio
import pytest
from docker.errors import APIError

from proctor.contracts import SandboxBrokenError
from proctor.sandbox import sandbox_owner
from proctor_sandbox_docker import _networks
from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker._made import Made
from proctor_sandbox_docker._networks import FIX, Networks
from proctor_sandbox_docker.compose import NetworkSpec, ProjectSpec, ServiceSpec

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("engine_address")]


def one_range() -> str:
    """A range of addresses that only one network can have."""
    return f"10.{secrets.randbelow(90) + 110}.{secrets.randbelow(256)}.0/29"


def project(*subnets: str | None) -> ProjectSpec:
    specs = [NetworkSpec(f"n{index}", subnets=(net,) if net else ()) for index, net in enumerate(subnets)]
    return ProjectSpec((ServiceSpec("a", "x"),), "a", {spec.name: spec for spec in specs})


def sample() -> Made:
    return Made.begin(sandbox_owner())


async def there(engine: Engine, made: Made) -> int:
    wanted = {"label": f"proctor.project={made.project}"}
    return len(await engine.call("list", lambda client: client.networks(filters=wanted)))


async def test_a_sample_waits_until_another_gives_its_range_back(
    engine_address: Any, caplog: pytest.LogCaptureFixture
) -> None:
    # Given a sample that has the only range, and three that want it
    caplog.set_level(logging.WARNING, "proctor.sandbox")
    engine = Engine(engine_address)
    await engine.open()
    networks, first, subnet = Networks(engine), sample(), one_range()
    await networks.make(project(subnet), first)
    seen: list[str] = []

    async def one() -> None:
        made = sample()
        found = await networks.make(project(None, subnet), made)
        assert len(found) == await there(engine, made) == 2
        seen.append(made.project)
        await made.remove(engine)
        networks.gone(made.project)
        assert await there(engine, made) == 0

    # When it gives the range back only after they wait
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(one)
        with anyio.fail_after(60):
            while "no range of addresses is free" not in caplog.text:  # noqa: ASYNC110  # polled
                await anyio.sleep(0.02)
        assert not seen
        await first.remove(engine)
        networks.gone(first.project)
    # Then each has had it, and it was told once, with what helps
    assert len(seen) == 3
    [told] = [record.getMessage() for record in caplog.records]
    assert FIX in told and '"default-address-pools"' in told


async def test_who_waits_holds_nothing(engine_address: Any) -> None:
    # Given a sample that needs two networks, of which one can't be had
    engine = Engine(engine_address)
    await engine.open()
    networks, first, second, subnet = Networks(engine), sample(), sample(), one_range()
    await networks.make(project(subnet), first)
    # When it tries
    found = await networks._try(list(project(None, subnet).networks.values()), second)
    # Then the other one is not kept meanwhile
    assert found is None and await there(engine, second) == 0 and not second.networks
    await first.remove(engine)


async def test_when_nobody_gives_a_range_back_it_is_said_what_helps(
    engine_address: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a range that is taken by somebody else, and a clock that runs
    engine = Engine(engine_address)
    await engine.open()
    times = iter(range(0, 100_000, 100))
    monkeypatch.setattr(_networks, "_POLL_SECONDS", 0.01)
    networks, first, second, subnet = Networks(engine, lambda: float(next(times))), sample(), sample(), one_range()
    await Networks(engine).make(project(subnet), first)
    # When a sample wants it
    try:
        with pytest.raises(SandboxBrokenError) as caught:
            await networks.make(project(subnet), second)
    finally:
        await first.remove(engine)
    # Then it does not wait for ever
    assert FIX in str(caught.value) and "docker network prune" in str(caught.value)
    assert await there(engine, second) == 0


@pytest.mark.parametrize(
    ("said", "exhausted"),
    [
        # Docker 20.10 and 24, Docker 27, Podman 4
        ("could not find an available, non-overlapping IPv4 address pool among the defaults to assign", True),
        ("all predefined address pools have been fully subnetted", True),
        ("Pool overlaps with other one on this address space", True),
        ("could not find free subnet from subnet pools", True),
        ("network with name x already exists", False),
    ],
)
async def test_what_engines_say_of_it_is_understood(said: str, exhausted: bool) -> None:
    assert _networks._is_exhausted(APIError("500", explanation=json.dumps({"message": said}))) is exhausted

"""Containers that are kept ready: who gets them, how many there are, and that none is left."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from operator import methodcaller
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from anyio import to_thread
from child_processes import running
from docker import APIClient
from docker.errors import NotFound

from proctor.concurrency import detached_tasks
from proctor.contracts import RunningSandbox, SandboxBrokenError, SandboxOwner, UsageError
from proctor.sandbox import cleanup_sandboxes, configure_sandboxes, sample_sandbox, sandbox
from proctor.schema import Sample, SandboxSpec, short_uuid
from proctor_sandbox_docker._compose_command import ComposeRun
from proctor_sandbox_docker._config import asks_for_metadata, read
from proctor_sandbox_docker._driver import DockerDriver
from proctor_sandbox_docker._made import READY
from proctor_sandbox_docker._services import start_project
from proctor_sandbox_docker._warm import WARM, WarmPool, warm_size, why_not_warm

IMAGE = "proctor-busybox:latest"
ODD_ID = 's 1/ü: "quoted", a.b=c_d'
pytestmark = pytest.mark.anyio


class Run:
    """A run with its sandboxes, and what the engine says of them."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.driver = DockerDriver()
        self.hosts: dict[Any, str] = {}
        self.to_come: dict[str, int | None] = {}

    @asynccontextmanager
    async def sample(
        self, id: Any, to_come: int | None, task: str = "quiz", config: Any = IMAGE
    ) -> AsyncIterator[RunningSandbox]:
        """A sample in its sandbox, which is listed as its own."""
        spec, sample = SandboxSpec(type="docker", config=config), Sample(input="q", id=id)
        self.to_come[task] = to_come
        async with sample_sandbox(spec, task, sample, epoch=2, to_come=lambda: self.to_come[task]):
            self.hosts[id] = (await sandbox().exec(["hostname"])).stdout.strip()
            mine = [one for one in await self.there() if one.owner and one.owner.sample == str(id)]
            [box] = [one for one in mine if not one.id.startswith("volume/")]
            yield box

    async def there(self) -> list[RunningSandbox]:
        return [one for one in await self.driver.sandboxes() if one.owner and one.owner.run_id == self.run_id]

    async def kept_ready(self, count: int) -> list[str]:
        """The beginnings of the ids of the containers that are kept ready, once there are so many."""
        with anyio.fail_after(60):
            while True:
                names = [one.id for one in await self.there() if "kept ready" in one.state and "up" in one.state]
                with suppress(NotFound):  # it was just being removed
                    if len(names) == count:
                        found = [await self.engine(methodcaller("inspect_container", name)) for name in names]
                        return [one["Id"][:12] for one in found]

    async def engine(self, work: Callable[[Any], Any]) -> Any:
        await self.driver.engine.open()
        return await self.driver.engine.call("ask", work)


@asynccontextmanager
async def a_run(max_sandboxes: int = 2) -> AsyncIterator[Run]:
    """A run, at whose end nothing is there any more."""
    run = Run(short_uuid())
    async with detached_tasks():
        with configure_sandboxes(max_sandboxes, run.run_id):
            try:
                yield run
            finally:
                await cleanup_sandboxes()
            assert await run.there() == []


@pytest.fixture
def happened(monkeypatch: pytest.MonkeyPatch, engine_address: Any) -> list[str]:
    """``create`` and ``remove``, as the engine is asked for the one and says that it has done the other.

    Two containers are kept ready.
    """
    monkeypatch.setenv(WARM, "2")
    found: list[str] = []
    create, remove = APIClient.create_container_from_config, APIClient.remove_container

    def creates(self: APIClient, *args: Any, **kwargs: Any) -> Any:
        found.append("create")
        return create(self, *args, **kwargs)

    def removes(self: APIClient, *args: Any, **kwargs: Any) -> None:
        remove(self, *args, **kwargs)
        found.append("remove")

    monkeypatch.setattr(APIClient, "create_container_from_config", creates)
    monkeypatch.setattr(APIClient, "remove_container", removes)
    return found


async def test_a_sample_gets_one_that_is_ready_which_then_says_so_and_no_other_gets_it(happened: list[str]) -> None:
    async with a_run() as run:
        async with run.sample("first", 2):
            ready = await run.kept_ready(2)
            async with run.sample(ODD_ID, 1) as mine:
                assert mine.owner is not None
                assert (mine.owner.task, mine.owner.sample, mine.owner.epoch) == ("quiz", ODD_ID, 2)
                assert mine.owner.alive() and "ready" not in mine.state and mine.connection is not None
        async with run.sample("last", 0):
            assert [one.owner.sample for one in await run.there() if one.owner] == ["last"], "none waits any more"
        assert run.hosts["first"] not in ready
        assert {run.hosts[ODD_ID], run.hosts["last"]} == set(ready)
    assert Counter(happened) == {"create": 3, "remove": 3}


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
async def test_there_are_never_more_than_samples_may_have_and_those_that_are_ready(
    happened: list[str], known: bool
) -> None:
    async with a_run() as run:

        async def one(number: int) -> None:
            async with run.sample(number, 0 if known else None):
                pass

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(one, number)
    there = [happened[:end].count("create") - happened[:end].count("remove") for end in range(len(happened) + 1)]
    assert len(set(run.hosts.values())) == 8, "each served one sample"
    assert max(there) <= 2 + 2
    assert happened.count("create") == 8 if known else happened.count("create") <= 8 + 2


@pytest.mark.slow
async def test_one_that_has_died_is_not_given_out(happened: list[str], caplog: pytest.LogCaptureFixture) -> None:
    async with a_run(max_sandboxes=3) as run, run.sample("first", 2):
        ready = await run.kept_ready(2)
        await run.engine(lambda client: client.kill(ready[0]))
        await run.engine(lambda client: client.remove_container(ready[1], force=True))
        async with run.sample("second", 1), run.sample("third", 0):
            assert not {run.hosts["second"], run.hosts["third"]} & set(ready)
            assert not [one for one in await run.there() if "ready" in one.state]
    assert happened.count("create") == 5, "nothing takes the place of what was lost"
    # One that is killed while it starts is said to have ended, one that is killed later to be exited.
    assert "exited" in caplog.text
    assert "No other takes its place" in caplog.text
    assert "somebody removed it" in caplog.text


@pytest.mark.slow
async def test_what_goes_wrong_while_one_is_made_ready_is_no_sample_s(
    happened: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = start_project

    async def start(engine: Any, images: Any, networks: Any, project: Any, made: Any) -> Any:
        if READY in made.labels:
            await real(engine, images, networks, project, made)
            raise SandboxBrokenError("the engine has a bad day")
        return await real(engine, images, networks, project, made)

    monkeypatch.setattr("proctor_sandbox_docker._driver.start_project", start)
    async with a_run() as run:
        for number in range(4):
            async with run.sample(number, 4 - number):
                assert len(await run.there()) <= 3
    assert happened.count("create") == 4 + 2
    assert "did not start: the engine has a bad day" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("how", ["on their way", "ready", "cancelled"])
async def test_what_no_sample_took_is_gone_when_the_run_ends(happened: list[str], how: str) -> None:
    async with a_run() as run:
        with anyio.CancelScope() as scope:
            async with run.sample("only", None):
                if how != "on their way":
                    await run.kept_ready(2)
                if how == "cancelled":
                    scope.cancel()
                    await anyio.sleep_forever()
    assert happened.count("create") == happened.count("remove") <= 3


@pytest.mark.slow
async def test_a_sample_that_is_cancelled_while_it_waits_for_one_leaves_nothing(
    happened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, given = anyio.Event(), WarmPool._given

    async def takes(self: WarmPool, one: Any) -> Any:
        waits.set()
        return await given(self, one)

    monkeypatch.setattr(WarmPool, "_given", takes)
    async with a_run() as run, run.sample("first", 2):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def second() -> None:
                    async with run.sample("second", 1):
                        raise AssertionError("it was cancelled")

                group.start_soon(second)
                await waits.wait()
                scope.cancel()
        [kept] = await run.kept_ready(1)
        assert kept != run.hosts["first"]
    assert happened.count("create") == happened.count("remove")


@pytest.mark.slow
@pytest.mark.usefixtures("happened")
async def test_those_of_a_task_whose_samples_do_not_come_make_room_for_another_s() -> None:
    async with a_run() as run:
        to_come = [2]
        spec = SandboxSpec(type="docker", config=IMAGE)
        async with sample_sandbox(spec, "ends early", Sample(input="q", id=1), to_come=lambda: to_come[0]):
            stale = await run.kept_ready(2)
        to_come[0] = 0
        async with run.sample("first", 2, task="other"):
            pass
        async with run.sample("second", 1, task="other"):
            assert not set(stale) & set(await run.kept_ready(1))


@pytest.mark.slow
@pytest.mark.usefixtures("happened")
async def test_the_volumes_of_one_are_listed_as_it_is() -> None:
    services = {"a": {"image": IMAGE, "command": "sleep 600", "volumes": ["data:/data"]}}
    config = {"services": services, "volumes": {"data": {}}}

    async def volumes(run: Run) -> list[tuple[str, str]]:
        there = [one for one in await run.there() if one.id.startswith("volume/")]
        return sorted((one.owner.sample, one.state) for one in there if one.owner)

    async with a_run() as run, run.sample("first", 1, config=config):
        await run.kept_ready(1)
        assert await volumes(run) == [("", "volume, kept ready"), ("first", "volume")]
        async with run.sample("second", 0, config=config):
            assert await volumes(run) == [("first", "volume"), ("second", "volume")]


@pytest.mark.slow
async def test_where_it_has_no_effect_that_is_said(
    happened: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text(
        f"services:\n  a:\n    image: {IMAGE}\n    mem_limit: ${{SAMPLE_METADATA_MEMORY-64m}}\n    command: sleep 600\n"
    )
    async with a_run() as run, run.sample("first", 2, config=str(file)):
        pass
    assert f"{WARM}=2 has no effect on task 'quiz': its configuration hangs on each sample's metadata" in caplog.text
    assert happened.count("create") == 1


@pytest.mark.usefixtures("happened")
async def test_that_what_is_kept_after_the_run_is_not_started_ahead_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    owner = SandboxOwner.of_this_process("run7", task="kept", keep=True)
    monkeypatch.setattr("proctor_sandbox_docker._driver.sandbox_owner", lambda: owner)
    await DockerDriver().task_init("kept", IMAGE)
    assert f"{WARM}=2 has no effect on task 'kept': what is kept after the run (--no-sandbox-cleanup)" in caplog.text


@pytest.mark.usefixtures("happened")
async def test_that_what_docker_compose_starts_is_not_started_ahead_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def project(self: ComposeRun) -> Any:
        return read(IMAGE, None)

    monkeypatch.setattr(ComposeRun, "project", project)
    monkeypatch.setattr("proctor_sandbox_docker._driver.find_compose", lambda: ("docker", "compose"))
    file = tmp_path / "compose.yaml"
    file.write_text(f"services:\n  a:\n    image: {IMAGE}\n    oom_score_adj: 5\n")
    await DockerDriver().task_init("composed", str(file))
    assert f"{WARM}=2 has no effect on task 'composed': `docker compose` starts its samples" in caplog.text


# Without an engine


@pytest.mark.parametrize(("said", "count"), [("", 0), (" ", 0), ("0", 0), ("4", 4), (" 12 ", 12)])
def test_how_many_are_kept_ready(said: str, count: int) -> None:
    assert warm_size(said) == count


@pytest.mark.parametrize("said", ["-1", "many", "1.5", "1e3", "٣"])
async def test_what_is_no_number_is_refused_before_anything_runs(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WARM, said)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(UsageError, match=f"{WARM}={said}: .* such as 4"):
        await DockerDriver().check(IMAGE)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("", ""),
        ("ports: ['80']", ""),
        ("network_mode: none", ""),
        ("volumes: ['data:/data']", ""),
        ("ports: ['8080:80']", "a fixed port of the host"),
        ("networks: [inner]", "a network or an address of its own"),
        ("networks: [outer]", ""),
        ("networks: {outer: {ipv4_address: 10.0.0.7}}", "a network or an address of its own"),
        ("depends_on: [db]", "several services"),
    ],
)
def test_what_can_be_started_before_its_sample_is_known(more: str, why: str) -> None:
    services = {"a": {"image": IMAGE, **(yaml.safe_load(more) or {})}}
    if "db" in more:
        services["db"] = {"image": IMAGE}
    config: dict[str, Any] = {"services": services, "networks": {"inner": {}, "outer": {"external": True}}}
    project = read({**config, "volumes": {"data": {}}}, None)
    assert (why in why_not_warm(project)) if why else not why_not_warm(project)


@pytest.mark.parametrize(
    ("value", "asks"),
    [
        ("plain", False),
        ("${HOME-x}", False),
        ("$$SAMPLE_METADATA_X", False),
        ("${SAMPLE_METADATA_X-1}", True),
        ("${SAMPLE_METADATA_X:+1}", True),
        ("$SAMPLE_METADATA_X", True),
    ],
)
def test_whether_samples_metadata_are_asked_for(value: str, asks: bool) -> None:
    assert asks_for_metadata({"services": {"a": {"image": IMAGE, "environment": {"A": value}}}}) == asks


# Processes that are told to end


OWNER = """
import sys
import anyio
from proctor.concurrency import detached_tasks
from proctor.sandbox import configure_sandboxes, sample_sandbox
from proctor.schema import Sample, SandboxSpec

async def main():
    async with detached_tasks():
        with configure_sandboxes():
            spec = SandboxSpec(type="docker", config="proctor-busybox:latest")
            async with sample_sandbox(spec, "killed", Sample(input="q", id=1), to_come=lambda: 9):
                await anyio.sleep_forever()

anyio.run(main, backend=sys.argv[1])
"""

TASK = """
import anyio
from proctor import Task, task
from proctor.dataset import Sample
from proctor.solver import solver

@solver
def stays():
    async def solve(state, generate):
        await anyio.sleep_forever()
    return solve

@task
def stays_on():
    samples = [Sample(input="q", id=n) for n in range(9)]
    return Task(samples, solver=stays(), sandbox=("docker", "proctor-busybox:latest"))
"""


async def of_process(pid: int, ready: int) -> set[str]:
    """The names of what a process has, once so many are kept ready and one is in use."""
    with anyio.fail_after(120):
        while True:
            found = [one for one in await DockerDriver().sandboxes() if one.owner and one.owner.pid == pid]
            if sum("kept ready" in one.state for one in found) == ready and len(found) == ready + 1:
                return {one.id for one in found}
            await anyio.sleep(0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("happened")
async def test_what_a_killed_run_kept_ready_is_taken_away_with_the_rest(anyio_backend_name: str) -> None:
    with running([sys.executable, "-c", OWNER, anyio_backend_name]) as owner:
        theirs = await of_process(owner.pid, ready=2)
        owner.kill()
        await to_thread.run_sync(owner.wait)

    assert theirs <= set(await DockerDriver().reap(None))


@pytest.mark.slow
@pytest.mark.usefixtures("happened")
async def test_a_run_that_is_interrupted_leaves_none(tmp_path: Path, anyio_backend_name: str) -> None:
    (tmp_path / "stays.py").write_text(TASK)
    line = ["eval", "stays.py", "--model", "mock/model", "--max-sandboxes", "1", "--display", "none"]
    line += ["--async-backend", anyio_backend_name]
    with running([sys.executable, "-m", "proctor", *line], cwd=tmp_path) as child:
        theirs = await of_process(child.pid, ready=2)
        child.send_signal(signal.SIGINT)
        assert await to_thread.run_sync(child.wait) == 130

    assert not theirs & {one.id for one in await DockerDriver().sandboxes()}

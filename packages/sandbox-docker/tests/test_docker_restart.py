"""An engine that is restarted while commands run: one of the test's own, since it is everybody's otherwise."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread
from child_processes import running

from proctor.contracts import SandboxBrokenError, SandboxEnvironment
from proctor_sandbox_docker._address import Address
from proctor_sandbox_docker._driver import DockerDriver
from proctor_sandbox_docker._engine import Engine

IMAGE = "proctor-busybox:latest"
SECONDS = 60  # that an engine has to answer, or to end


class OwnEngine:
    """An engine without networks, so that it leaves those of the machine's other engine alone.

    Args:
        home: an empty folder.
    """

    def __init__(self, home: Path) -> None:
        self.address = Address(f"unix://{home}/docker.sock", "the test")
        self._home = home
        self._process: subprocess.Popen[bytes] | None = None
        self._processes = ExitStack()

    def start(self) -> None:
        """Start it; returns when it answers."""
        home = self._home
        # In a network of its own: an engine without a bridge removes that of the machine's other engine.
        command = ["unshare", "--net", "dockerd", "--host", self.address.url, "--pidfile", f"{home}/docker.pid"]
        command += ["--data-root", f"{home}/data", "--exec-root", f"{home}/exec"]
        command += ["--iptables=false", "--ip6tables=false", "--bridge=none"]
        (home / "docker.pid").unlink(missing_ok=True)
        with (home / "dockerd.log").open("a") as log:
            options = {"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL}
            self._process = self._processes.enter_context(running(command, **options))
        end = time.monotonic() + SECONDS
        while self.docker("version").returncode:
            if time.monotonic() > end or self._process.poll() is not None:
                raise RuntimeError((home / "dockerd.log").read_text()[-2000:])

    def docker(self, *words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """What the command line of Docker does with it."""
        env = {**os.environ, "DOCKER_HOST": self.address.url}
        return subprocess.run(["docker", *words], env=env, capture_output=True, timeout=SECONDS, **options)

    def end(self) -> None:
        """As `systemctl stop docker` does; containers are ended with it."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(SECONDS)

    def stop(self) -> None:
        """Take away all that it has."""
        ids = self.docker("ps", "-aq").stdout.decode().split()
        if ids:
            self.docker("rm", "-f", *ids)
        for name in ("docker.pid", "exec/containerd/containerd.pid"):
            with suppress(OSError, ValueError):
                os.kill(int((self._home / name).read_text()), signal.SIGTERM)
        if self._process is not None:
            self._process.wait(SECONDS)
        self._processes.close()
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mounted in sorted((each for each in mounts if each.startswith(f"{self._home}/")), reverse=True):
            subprocess.run(["umount", mounted], capture_output=True, timeout=SECONDS)


@pytest.fixture
def own_engine(engine_address: Address) -> Iterator[OwnEngine]:
    """An engine that has the image of the other one."""
    if shutil.which("dockerd") is None or shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("an engine of the test's own needs dockerd, unshare and root")
    with tempfile.TemporaryDirectory(prefix="dk") as folder:  # the path of a socket must be short
        engine = OwnEngine(Path(folder))
        try:
            engine.start()
            saved = subprocess.run(["docker", "save", IMAGE], capture_output=True, timeout=SECONDS, check=True).stdout
            assert engine.docker("load", input=saved).returncode == 0
            yield engine
        finally:
            engine.stop()


@pytest.mark.slow
@pytest.mark.timeout(500)
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.usefixtures("collected")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_restart_of_the_engine_breaks_the_sandbox_and_a_fresh_one_works(own_engine: OwnEngine) -> None:
    driver = DockerDriver(Engine(own_engine.address))
    envs = await driver.sample_init("restart", IMAGE, {})
    [box] = envs.values()

    async with anyio.create_task_group() as group:
        group.start_soon(end_when_it_runs, own_engine, box)
        with anyio.fail_after(120), pytest.raises(SandboxBrokenError) as raised:
            await box.exec(["sh", "-c", "echo > begun; sleep 600"])

    assert raised.value.state
    own_engine.start()  # in this thread, whose end would end it
    with pytest.raises(SandboxBrokenError, match=r"not running|state: exited"):
        await box.exec(["true"])
    fresh = await driver.sample_init("restart", IMAGE, {})
    [other] = fresh.values()
    assert (await other.exec(["echo", "well"])).stdout == "well\n"
    for each in (fresh, envs):
        await driver.sample_cleanup(each, False)
    assert await driver.sandboxes() == []


async def end_when_it_runs(engine: OwnEngine, box: SandboxEnvironment) -> None:
    """End the engine once the command has begun."""
    with anyio.fail_after(60):
        while not (await box.exec(["sh", "-c", "[ -e begun ]"])).success:
            await anyio.lowlevel.checkpoint()
    await to_thread.run_sync(engine.end)

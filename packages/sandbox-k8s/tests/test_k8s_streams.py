"""Commands over connections that break: nothing is run twice, and nothing is cut unseen."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from proctor.contracts import SandboxBrokenError, SandboxEnvironment
from proctor_sandbox_k8s import _cluster, _command, _stream
from proctor_sandbox_k8s._driver import KubernetesDriver
from proctor_testkit import FakeKubernetes

pytestmark = pytest.mark.anyio
MIB = 1024**2
Until = Callable[[Callable[[], object]], Awaitable[None]]


@pytest.fixture
async def box(cluster: FakeKubernetes, anyio_backend: str) -> AsyncIterator[SandboxEnvironment]:
    driver = KubernetesDriver()
    await driver.task_init("quiz", "an-image")
    envs = await driver.sample_init("quiz", "an-image", {})
    yield envs["default"]
    cluster.clear()
    with anyio.CancelScope(shield=True):
        await driver.sample_cleanup(envs, True)
        await driver.task_cleanup("quiz", "an-image", True)


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_handshake_that_fails_is_made_again(
    cluster: FakeKubernetes, box: SandboxEnvironment, status: int, tmp_path: Path
) -> None:
    cluster.fail(status, on="^exec", times=3)

    result = await box.exec(["sh", "-c", f"echo once >> {tmp_path}/runs; echo done"])

    assert result.stdout == "done\n"
    assert (tmp_path / "runs").read_text() == "once\n"


@pytest.mark.parametrize("trouble", ["reset", "lose_reply"])
async def test_a_handshake_without_an_answer_is_made_again(
    cluster: FakeKubernetes, box: SandboxEnvironment, trouble: str, tmp_path: Path
) -> None:
    getattr(cluster, trouble)(on="^exec", times=2)

    result = await box.exec(["sh", "-c", f"echo once >> {tmp_path}/runs; echo done"])

    assert result.stdout == "done\n"
    assert (tmp_path / "runs").read_text() == "once\n"


async def test_handshakes_that_go_on_failing_are_an_error_that_names_the_pod(
    cluster: FakeKubernetes, box: SandboxEnvironment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_command, "_SHAKING", 1.0)
    cluster.fail(500, "error dialing backend", on="^exec", times=None)

    with pytest.raises(SandboxBrokenError, match="no command could be begun for 1 s: error dialing backend") as raised:
        await box.exec(["touch", f"{tmp_path}/made"])

    assert raised.value.state == "Running"
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("after", [1, 30, 60, 100, 300, 2_000, 50_000])
async def test_a_stream_that_is_cut_is_an_error_or_was_whole(
    cluster: FakeKubernetes, box: SandboxEnvironment, after: int, tmp_path: Path
) -> None:
    script = f"echo once >> {tmp_path}/runs; n=0; while [ $n -lt 40 ]; do echo {'x' * 2000}; n=$((n+1)); done"
    cluster.cut(after, on="^exec")

    outcome = ""
    try:
        outcome = (await box.exec(["sh", "-c", script])).stdout
    except SandboxBrokenError as error:
        outcome = str(error)
    assert "was cut" in outcome or outcome == ("x" * 2000 + "\n") * 40

    runs = tmp_path / "runs"
    assert not runs.exists() or runs.read_text() == "once\n", "a command is never run twice"


async def test_half_a_frame_is_a_cut(cluster: FakeKubernetes, box: SandboxEnvironment) -> None:
    assert (await box.exec(["echo", "whole"])).stdout == "whole\n"
    cluster.half_frame(on="^exec", times=1)

    # The frame is the shell's first line, so nothing was begun, and a second attempt is made.
    assert (await box.exec(["echo", "whole"])).stdout == "whole\n"


async def test_what_comes_in_drops_is_put_together(cluster: FakeKubernetes, box: SandboxEnvironment) -> None:
    cluster.drip(on="^exec")

    result = await box.exec(["sh", "-c", "echo out; echo err >&2; exit 4"])

    assert (result.stdout, result.stderr, result.returncode) == ("out\n", "err\n", 4)


async def test_a_command_whose_stream_is_cut_is_killed(
    cluster: FakeKubernetes, box: SandboxEnvironment, until: Until, tmp_path: Path
) -> None:
    mark = tmp_path / "begun"
    broken: list[SandboxBrokenError] = []

    async def run() -> None:
        try:
            await box.exec(["sh", "-c", f"echo $$ > {mark}; exec sleep 600"])
        except SandboxBrokenError as error:
            broken.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await until(mark.exists)
        cluster.end_streams()

    assert "it is not known how it went" in str(broken[0])
    assert (await box.exec(["kill", "-0", mark.read_text().strip()])).returncode != 0


async def test_a_connection_that_goes_silent_is_found_dead(
    cluster: FakeKubernetes, box: SandboxEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_stream, "_SILENCE", 0.6)
    monkeypatch.setattr(_stream, "_PING_EVERY", 0.2)
    cluster.cut(400, on="^exec", stall=True)

    with pytest.raises(SandboxBrokenError, match=r"nothing was heard for 0\.6 s"):
        await box.exec(["sh", "-c", "head -c 100000 /dev/zero"])


async def test_a_command_that_is_silent_for_long_is_not_taken_for_dead(
    box: SandboxEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_stream, "_SILENCE", 0.6)
    monkeypatch.setattr(_stream, "_PING_EVERY", 0.1)

    assert (await box.exec(["sh", "-c", "sleep 1.5; echo done"])).stdout == "done\n"


async def test_a_limit_holds_although_the_cluster_does_not_answer(
    cluster: FakeKubernetes, box: SandboxEnvironment, until: Until, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_command, "_KILLING", 1.0)
    mark = tmp_path / "begun"

    async def trouble() -> None:
        await until(mark.exists)
        cluster.fail(500, "nobody there", on="^exec", times=None)

    async with anyio.create_task_group() as group:
        group.start_soon(trouble)
        with pytest.raises(SandboxBrokenError, match="no command could be begun for 1 s: nobody there"):
            await box.exec(["sh", "-c", f"echo > {mark}; exec sleep 600"], timeout=1)


async def test_files_survive_streams_that_are_cut(cluster: FakeKubernetes, box: SandboxEnvironment) -> None:
    data = bytes(range(256)) * 4096

    cluster.cut(40, on="^exec", times=2)
    await box.write_file("file", data)
    cluster.cut(300_000, on="^exec", times=2)

    assert await box.read_file("file", text=False) == data


async def test_input_and_output_flow_at_the_same_time(box: SandboxEnvironment) -> None:
    data = b"0123456789abcde\n" * (8 * MIB // 16)

    result = await box.exec(["cat"], input=data)

    assert result.stdout.encode() == data


async def test_a_cluster_of_older_days_serves_as_well(
    cluster: FakeKubernetes, box: SandboxEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its protocol has no way to end a command's input; here it ends by its length."""
    monkeypatch.setattr(_cluster, "PROTOCOLS", ("v4.channel.k8s.io",))

    assert (await box.exec(["cat"], input="all of it", timeout=60)).stdout == "all of it"
    assert cluster.requests[-1].headers["sec-websocket-protocol"] == "v4.channel.k8s.io"


async def test_the_way_in_is_a_command_that_kubectl_knows(box: SandboxEnvironment, kubectl_path: str) -> None:
    way = await box.connection()
    words = [kubectl_path, *shlex.split(way.command.replace(" -it ", " -i "))[1:]]

    done = await to_thread.run_sync(
        lambda: subprocess.run(words, input="echo inside\n", capture_output=True, text=True, timeout=100)
    )

    assert done.stdout == "inside\n", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_five_hundred_handshakes_that_fail_lose_no_command(
    cluster: FakeKubernetes, box: SandboxEnvironment, tmp_path: Path
) -> None:
    """Every second one is refused."""
    cluster.schedule(*[500, 200] * 500, on="^exec")
    done: list[str] = []

    async def run(number: int) -> None:
        for turn in range(10):
            name = f"{number}-{turn}"
            result = await box.exec(["sh", "-c", f"echo once >> {tmp_path}/{name}; echo {name}"])
            done.append(result.stdout.strip())

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(run, number)

    assert len(set(done)) == 200
    assert {path.read_text() for path in tmp_path.iterdir() if path.name != "kubeconfig"} == {"once\n"}

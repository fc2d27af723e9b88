"""How a sample gets into its sandboxes and out of them."""

from __future__ import annotations

import base64
import gc
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from proctor import plugins
from proctor.contracts import SandboxDriver, SandboxEnvironment, SandboxOwner, SandboxProvider, UsageError
from proctor.limits import SampleLimits, use_limits
from proctor.log import Transcript, use_transcript
from proctor.sandbox import (
    LocalSandbox,
    SandboxSpec,
    cleanup_sandboxes,
    configure_sandboxes,
    demand,
    exec_gates,
    sample_sandbox,
    samples_to_come,
    sandbox,
    sandbox_default,
    sandbox_gates,
    sandbox_owner,
    sandbox_with,
)
from proctor.schema import Sample, SandboxEvent

pytestmark = pytest.mark.anyio


class Driver(SandboxDriver):
    """Two sandboxes a sample, in folders; notes what it is asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls: list[Any] = []
        self.owners: list[SandboxOwner] = []
        self.to_come: list[int | None] = []
        self.demands: list[Callable[[], int | None]] = []
        self.inside = 0
        self.most = 0

    async def task_init(self, task: str, config: Any) -> None:
        await anyio.lowlevel.checkpoint()
        self.calls.append(("task_init", task, config))
        self.owners.append(sandbox_owner())

    async def sample_init(self, task: str, config: Any, metadata: dict[str, Any]) -> dict[str, SandboxEnvironment]:
        self.inside += 1
        self.to_come.append(samples_to_come())
        self.demands.append(demand())
        self.owners.append(sandbox_owner())
        self.most = max(self.most, self.inside)
        self.calls.append(("sample_init", metadata))
        for name in ("attacker", "victim"):
            (self.root / name).mkdir(exist_ok=True)
        return {name: LocalSandbox(self.root / name) for name in ("attacker", "victim")}

    async def sample_cleanup(self, envs: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        self.inside -= 1
        self.calls.append(("sample_cleanup", sorted(envs), interrupted))

    async def task_cleanup(self, task: str, config: Any, cleanup: bool) -> None:
        self.calls.append(("task_cleanup", task, config, cleanup))
        if task == "broken":
            raise RuntimeError("can't")


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """Providers ``pair`` and ``execs`` that the plugins know, and a run of its own."""
    made = Driver(tmp_path)
    pair = SandboxProvider("pair", lambda: made, default_max_sandboxes=lambda cpus: 3)
    records = {"pair": pair, "execs": replace(pair, name="execs", default_max_execs=lambda cpus: 1)}
    known = plugins.get

    def get(kind: str, name: str) -> Any:
        return records[name] if kind == "sandbox_providers" and name in records else known(kind, name)

    monkeypatch.setattr(plugins, "get", get)
    with configure_sandboxes():
        yield made


PAIR = SandboxSpec(type="pair", config={"image": "x"})
EXECS = SandboxSpec(type="execs")


def a_sample(**fields: Any) -> Sample:
    return Sample("q", id=1, **fields)


async def test_inside_the_first_sandbox_is_the_default_one(driver: Driver) -> None:
    async with sample_sandbox(PAIR, "task", a_sample()):
        assert sandbox() is sandbox("attacker") is sandbox("default")
        with sandbox_default("victim"):
            assert sandbox() is sandbox("victim")
        assert sandbox() is sandbox("attacker")
        with pytest.raises(ValueError, match=r"no sandbox named 'nope'; it has attacker, victim"):
            sandbox("nope")


async def test_without_a_sandbox_the_error_says_how_to_have_one() -> None:
    with pytest.raises(ProcessLookupError, match="--sandbox local"):
        sandbox()


async def test_an_unknown_provider_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="dockr"):
        async with sample_sandbox(SandboxSpec(type="dockr"), "task", a_sample()):
            pass


async def test_the_driver_is_made_once_and_prepares_each_configuration_once(driver: Driver) -> None:
    async with anyio.create_task_group() as tasks:

        async def one(spec: SandboxSpec) -> None:
            async with sample_sandbox(spec, "task", a_sample(metadata={"a": 1})):
                await anyio.lowlevel.checkpoint()

        for spec in (PAIR, PAIR, SandboxSpec(type="pair")):
            tasks.start_soon(one, spec)
    await cleanup_sandboxes(cleanup=False)
    assert sorted(map(str, (call for call in driver.calls if call[0].startswith("task")))) == [
        "('task_cleanup', 'task', None, False)",
        "('task_cleanup', 'task', {'image': 'x'}, False)",
        "('task_init', 'task', None)",
        "('task_init', 'task', {'image': 'x'})",
    ]
    assert driver.calls.count(("sample_init", {"a": 1})) == 3


async def test_runs_that_follow_one_another_share_no_driver(driver: Driver) -> None:
    with configure_sandboxes():
        async with sample_sandbox(PAIR, "task", a_sample()):
            [gate] = sandbox_gates()
        with configure_sandboxes(1):
            assert sandbox_gates() == []
            async with sample_sandbox(PAIR, "task", a_sample()):
                assert [inner.limit for inner in sandbox_gates()] == [1]
        assert sandbox_gates() == [gate]


async def test_a_provider_that_can_not_clean_up_keeps_no_other_from_it(driver: Driver) -> None:
    for task in ("broken", "whole"):
        async with sample_sandbox(PAIR, task, a_sample()):
            pass
    await cleanup_sandboxes()
    assert [call[1] for call in driver.calls if call[0] == "task_cleanup"] == ["broken", "whole"]


@pytest.mark.parametrize(("given", "limit"), [(None, 3), (2, 2)])
async def test_the_gate_holds_back_samples_and_waiting_is_no_work(
    driver: Driver, given: int | None, limit: int
) -> None:
    everyone = [SampleLimits() for _ in range(6)]
    go = anyio.Event()

    async def one(limits: SampleLimits) -> None:
        with use_limits(limits):
            async with sample_sandbox(PAIR, "task", a_sample()):
                await go.wait()

    with configure_sandboxes(given):
        async with anyio.create_task_group() as tasks:
            for limits in everyone:
                tasks.start_soon(one, limits)
            while driver.inside < limit or sum(gate.waiting for gate in sandbox_gates()) < len(everyone) - limit:
                await anyio.lowlevel.checkpoint()
            go.set()
        assert driver.most == limit
        [gate] = sandbox_gates()
        assert (gate.limit, gate.held, gate.waiting) == (limit, 0, 0)
        assert sum(limits.waiting > 0 for limits in everyone) == len(everyone) - limit


async def test_commands_have_a_gate_of_their_own_and_waiting_is_no_work(driver: Driver) -> None:
    limits = SampleLimits()
    async with sample_sandbox(EXECS, "task", a_sample()):
        [sandboxes], [execs] = sandbox_gates(), exec_gates()
        assert (sandboxes.name, execs.name, execs.limit) == ("execs sandboxes", "execs execs", 1)
        async with anyio.create_task_group() as tasks:

            async def slow() -> None:
                await sandbox().exec(["sh", "-c", "while [ ! -e go ]; do sleep 0.01; done"])

            async def other() -> None:
                with use_limits(limits):
                    await sandbox().exec(["true"])

            tasks.start_soon(slow)
            while not execs.held:
                await anyio.lowlevel.checkpoint()
            tasks.start_soon(other)
            while not execs.waiting:
                await anyio.lowlevel.checkpoint()
            await sandbox().write_file("go", "")
        assert (execs.held, execs.waiting, execs.peak) == (0, 0, 1)
    assert limits.waiting > 0


async def test_a_driver_knows_for_whom_it_makes_a_sandbox(driver: Driver) -> None:
    with configure_sandboxes(run_id="run7"):
        async with sample_sandbox(PAIR, "quiz", a_sample(), epoch=3):
            pass
    prepared, made = driver.owners
    assert (prepared.run_id, prepared.task, prepared.sample, prepared.epoch) == ("run7", "quiz", "", 0)
    assert (made.run_id, made.task, made.sample, made.epoch) == ("run7", "quiz", "1", 3)


async def test_a_driver_knows_how_many_samples_will_want_the_same(driver: Driver) -> None:
    go = anyio.Event()

    async def one(task: str) -> None:
        async with sample_sandbox(PAIR, task, a_sample(), to_come=lambda: 10):
            await go.wait()

    async with sample_sandbox(PAIR, "task", a_sample()):
        pass
    with configure_sandboxes(max_sandboxes=1):
        async with anyio.create_task_group() as tasks:
            for number, task in enumerate(("task", "task", "other", "task")):  # in this order, on trio, too
                tasks.start_soon(one, task)
                await at_the_gate(driver, waiting=number)
            async with anyio.create_task_group() as gives_up:
                gives_up.start_soon(one, "task")
                await at_the_gate(driver, waiting=4)
                gives_up.cancel_scope.cancel()
            go.set()

    assert driver.to_come[0] is None, "nobody has said"
    assert driver.to_come[1:] == [10, 11, 10, 10], "those that wait, without the one at hand and other tasks'"
    assert samples_to_come() is None


async def at_the_gate(driver: Driver, waiting: int) -> None:
    """Wait until one sample, after an earlier one, has its sandbox, and so many wait for theirs."""
    with anyio.fail_after(60):
        while len(driver.to_come) < 2 or sum(gate.waiting for gate in sandbox_gates()) < waiting:
            await anyio.lowlevel.checkpoint()


async def test_a_driver_can_ask_later_and_holds_nothing_of_a_sample_by_that(driver: Driver) -> None:
    to_come, samples = [2], [a_sample(), a_sample()]
    for sample in samples:
        async with sample_sandbox(PAIR, "task", sample, to_come=lambda: to_come[0]):
            to_come[0] -= 1
    held = [weakref.ref(sample) for sample in samples]
    del sample
    samples.clear()

    gc.collect()
    assert [each() for each in held] == [None, None]
    assert [each() for each in driver.demands] == [0, 0]
    assert driver.to_come == [2, 1]


@pytest.mark.parametrize("cleanup", [True, False])
async def test_a_failing_sample_leaves_its_sandbox_unless_told_to_keep_it(driver: Driver, cleanup: bool) -> None:
    with pytest.raises(ValueError, match="solver"):
        async with sample_sandbox(PAIR, "task", a_sample(), cleanup=cleanup):
            raise ValueError("solver")
    cleaned = ("sample_cleanup", ["attacker", "victim"], False)
    assert (cleaned in driver.calls) == cleanup


async def test_a_cancelled_sample_is_cleaned_up_as_interrupted(driver: Driver) -> None:
    with anyio.CancelScope() as scope:
        async with sample_sandbox(PAIR, "task", a_sample()):
            scope.cancel()
            await anyio.sleep_forever()
    assert driver.calls[-1] == ("sample_cleanup", ["attacker", "victim"], True)


async def test_files_come_from_text_data_and_paths_and_go_where_they_are_told(driver: Driver, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "leaf.txt").write_text("leaf")
    data = base64.b64encode(b"\x00\xff").decode()
    files = {
        "text.txt": "hello\nworld",
        "data.bin": f"data:application/octet-stream;base64,{data}",
        "percent.txt": "data:text/plain,a%20b",
        "victim:in/victim.txt": str(tree / "sub" / "leaf.txt"),
        "default:copied": str(tree),
        "literal.txt": "data:not base64 at all",
    }
    async with sample_sandbox(PAIR, "task", a_sample(files=files)):
        assert await sandbox().read_file("text.txt") == "hello\nworld"
        assert await sandbox().read_file("data.bin", text=False) == b"\x00\xff"
        assert await sandbox().read_file("percent.txt") == "a b"
        assert await sandbox("victim").read_file("in/victim.txt") == "leaf"
        assert await sandbox().read_file("copied/sub/leaf.txt") == "leaf"
        assert await sandbox().read_file("literal.txt") == "data:not base64 at all"


async def test_a_file_for_a_sandbox_that_is_not_there_is_an_error(driver: Driver) -> None:
    with pytest.raises(FileNotFoundError, match="only attacker, victim"):
        async with sample_sandbox(PAIR, "task", a_sample(files={"nope:a.txt": "x"})):
            pass
    assert driver.inside == 0


@pytest.mark.parametrize("script", ["pwd > where; cat in.txt >> where", "#!/bin/sh\npwd > where; cat in.txt >> where"])
async def test_the_setup_script_runs_in_the_default_sandbox_and_goes(driver: Driver, script: str) -> None:
    async with sample_sandbox(PAIR, "task", a_sample(files={"in.txt": "given"}, setup=script)):
        assert await sandbox().read_file("where") == f"{driver.root}/attacker\ngiven"
        assert (await sandbox().exec(["ls", "-A"])).stdout.split() == ["in.txt", "where"]


async def test_a_setup_script_that_fails_fails_the_sample(driver: Driver) -> None:
    with pytest.raises(RuntimeError, match="exit code 3: no good"):
        async with sample_sandbox(PAIR, "task", a_sample(setup="echo no good >&2; exit 3")):
            pass


async def test_what_is_done_in_a_sandbox_is_recorded(driver: Driver) -> None:
    with use_transcript(Transcript()) as transcript:
        async with sample_sandbox(PAIR, "task", a_sample()):
            await sandbox().exec(["sh", "-c", "echo out; exit 2"], input="in", env={"A": "1"}, timeout=60)
            await sandbox().write_file("a.bin", b"\x00")
            with pytest.raises(FileNotFoundError):
                await sandbox().read_file("missing")
            await sandbox().exec(["sh", "-c", "yes | head -n 100000"])
    events = [event for event in transcript.events if isinstance(event, SandboxEvent)]
    ran, wrote, failed, long = events
    assert (ran.action, ran.cmd, ran.input, ran.result, ran.output) == (
        "exec",
        "sh -c 'echo out; exit 2'",
        "in",
        2,
        "out\n",
    )
    assert ran.options == {"env": {"A": "1"}, "timeout": 60}
    assert (wrote.action, wrote.file, wrote.input) == ("write_file", "a.bin", "binary (1 B)")
    assert failed.output is not None and failed.output.startswith("FileNotFoundError")
    assert long.output is not None and len(long.output) < 20_000
    assert all(event.completed is not None and event.pending is None for event in events)


async def test_a_sandbox_can_be_found_by_what_is_in_it(driver: Driver) -> None:
    async with sample_sandbox(PAIR, "task", a_sample(files={"victim:flag.txt": "x"})):
        assert await sandbox_with("flag.txt") is sandbox("victim")
        assert await sandbox_with("missing.txt") is None
        assert await sandbox_with("sh", on_path=True) is sandbox("attacker")
        assert await sandbox_with("flag.txt", name="attacker") is None


async def test_the_local_sandbox_is_found_through_the_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with sample_sandbox(SandboxSpec(type="local"), "task", a_sample(files={"a.txt": "hi"})):
        assert (await sandbox().exec(["cat", "a.txt"])).stdout == "hi"
    assert list(tmp_path.iterdir()) == []

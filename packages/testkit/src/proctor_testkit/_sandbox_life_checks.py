"""Checks of sandboxes: how they come and go, many at a time."""

from __future__ import annotations

import anyio
import pytest
from anyio import to_thread

from proctor.contracts import SandboxConnection, SandboxDriver, SandboxEnvironment
from proctor.sandbox import cleanup_sandboxes, configure_sandboxes, sample_sandbox, sandbox
from proctor.schema import Sample, SandboxSpec
from proctor_testkit._sandbox_checks import MANY_TASK, TICKS, DriverOpener, SandboxChecks
from proctor_testkit._sandbox_processes import dead_owner
from proctor_testkit._suite import check

__all__ = ["LifeChecks"]


class LifeChecks(SandboxChecks):
    """Sandboxes are apart from one another, and nothing of them is left."""

    @check("sandbox.record")
    def test_its_record_says_what_it_is(self) -> None:
        record = self.record()

        assert record.name == self.provider
        assert record.backends == self.backends, "the suite's `backends` and the record's agree"
        for cpus in (1, 2, 64):
            for limit in (record.default_max_sandboxes(cpus), record.default_max_execs(cpus)):
                assert limit is None or limit >= 1

    @check("sandbox.apart")
    async def test_samples_do_not_see_one_another(self, driver: SandboxDriver) -> None:
        async with self.made(driver) as one, self.made(driver) as other:
            mine, yours = next(iter(one.values())), next(iter(other.values()))
            await mine.write_file("file", "mine")
            await yours.write_file("file", "yours")

            assert await mine.read_file("file") == "mine"
            assert (await yours.exec(["cat", "file"])).stdout == "yours"

    @check("sandbox.at_once")
    async def test_fifty_commands_at_once_do_not_mix(self, box: SandboxEnvironment) -> None:
        said: dict[int, str] = {}

        async def run(number: int) -> None:
            script = 'read word; echo "$word" > "$NUMBER"; cat "$NUMBER"'
            said[number] = await self.sh(box, script, input=f"word {number}\n", env={"NUMBER": f"file{number}"})

        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(run, number)

        assert said == {number: f"word {number}\n" for number in range(50)}

    @check("sandbox.connection")
    async def test_it_says_how_a_person_gets_in_or_that_none_does(self, box: SandboxEnvironment) -> None:
        try:
            found = await box.connection()
        except ConnectionError:
            return
        assert isinstance(found, SandboxConnection)
        assert found.type
        assert found.command

    @check("sandbox.cleanup")
    @pytest.mark.parametrize("interrupted", [False, True])
    async def test_a_sandbox_is_gone_after_its_sample(self, driver: SandboxDriver, interrupted: bool) -> None:
        async with self.made(driver) as envs:
            box = next(iter(envs.values()))
            await box.write_file("left", "over")
            await self.sh(box, f"({TICKS}) > /dev/null 2>&1 &", timeout=60)

            await driver.sample_cleanup(dict(envs), interrupted)
            envs.clear()

            with pytest.raises((OSError, RuntimeError)):
                await box.read_file("left")

    @check("sandbox.reap", needs="reap")
    async def test_what_a_killed_run_left_is_taken_away(
        self, driver: SandboxDriver, opener: DriverOpener, box: SandboxEnvironment
    ) -> None:
        await box.write_file("mine", "alive")
        mark = await to_thread.run_sync(dead_owner, opener, self.config)

        removed = await driver.reap(None)
        again = await driver.reap(None)

        assert removed, "the names of what was removed"
        assert not set(again) & set(removed), "what was removed is removed once"
        assert await box.read_file("mine") == "alive", "the sandboxes of a run that is alive stay"
        assert mark, "the killed process had made a sandbox"

    @check("sandbox.max_sandboxes")
    async def test_a_run_has_no_more_of_them_than_it_may(self) -> None:
        now = most = done = 0

        async def sample(number: int) -> None:
            nonlocal now, most, done
            spec = SandboxSpec(type=self.provider, config=self.config)
            async with sample_sandbox(spec, MANY_TASK, Sample(input="q", id=number)):
                now += 1
                most = max(most, now)
                assert (await sandbox().exec(["echo", str(number)])).stdout == f"{number}\n"
                now -= 1
                done += 1

        with configure_sandboxes(max_sandboxes=2):
            async with anyio.create_task_group() as group:
                for number in range(6):
                    group.start_soon(sample, number)
            await cleanup_sandboxes()

        assert done == 6
        assert 1 <= most <= 2

"""Checks of sandboxes: whose they are, how others find and remove them, and what it is like when one is gone."""

from __future__ import annotations

from typing import Any, ClassVar

import anyio
import pytest

from proctor.contracts import RunningSandbox, SandboxBrokenError, SandboxDriver, SandboxEnvironment
from proctor.sandbox import cleanup_sandboxes, configure_sandboxes, sample_sandbox, sandbox_owner
from proctor.schema import Sample, SandboxSpec, short_uuid
from proctor_testkit._sandbox_checks import TASK, DriverOpener, SandboxChecks
from proctor_testkit._suite import check

__all__ = ["OwnerChecks"]

ODD_ID = 's 1/ü: "quoted", a=b'
NOTICED = 60.0
"""Seconds in which a command has to notice that its sandbox is gone."""


class OwnerChecks(SandboxChecks):
    """What a run makes can be found and taken away by another process, and is not mistaken for another's."""

    services: ClassVar[Any] = None

    @check("sandbox.check")
    async def test_its_own_configuration_is_accepted_before_anything_runs(self, driver: SandboxDriver) -> None:
        await driver.check(self.config)

    @check("sandbox.owner", needs="list")
    async def test_it_says_for_whom_a_sandbox_was_made(self, opener: DriverOpener) -> None:
        run_id = short_uuid()
        with configure_sandboxes(run_id=run_id):
            spec = SandboxSpec(type=self.provider, config=self.config)
            async with sample_sandbox(spec, TASK, Sample(input="q", id=ODD_ID), epoch=3):
                found = [one for one in await self._of_run(opener(), run_id) if one.owner and one.owner.sample]

            assert found, "another driver finds what carries the labels of sandbox_owner()"
            for one in found:
                assert one.owner is not None
                assert (one.owner.task, one.owner.sample, one.owner.epoch) == (TASK, ODD_ID, 3)
                assert one.owner.alive() is True
                assert one.id
                assert one.state
                assert one.created is None or one.created.tzinfo is not None
            left = [one for one in await self._of_run(opener(), run_id) if one.owner and one.owner.sample]
            assert left == [], "what was taken down is not there any more"
            await cleanup_sandboxes()
            assert await self._of_run(opener(), run_id) == [], "nor is what was made for its task"

    @check("sandbox.remove", needs="list")
    async def test_another_can_take_it_away_by_its_id_and_no_other(
        self, driver: SandboxDriver, opener: DriverOpener
    ) -> None:
        other = opener()
        with configure_sandboxes(run_id=short_uuid()):
            run_id = sandbox_owner().run_id
            async with self.made(driver) as kept:
                before = {one.id for one in await self._of_run(other, run_id)}
                async with self.made(driver):
                    new = [one.id for one in await self._of_run(other, run_id) if one.id not in before]
                    assert new, "the second sandbox is among those that are there"

                    removed = await other.remove(new)
                    again = await other.remove(new)

                    assert removed, "the names of what was removed"
                    assert again == [], "what is not there is passed over"
                    still = {one.id for one in await self._of_run(other, run_id)}
                    assert not still & set(new)
                assert await self.sh(next(iter(kept.values())), "echo here") == "here\n", "others stay"

    @check("sandbox.vanish", needs="list vanish")
    async def test_a_sandbox_that_vanishes_is_no_failure_of_the_command(
        self, driver: SandboxDriver, opener: DriverOpener
    ) -> None:
        with configure_sandboxes(run_id=short_uuid()):
            async with self.made(driver) as envs:
                box = next(iter(envs.values()))
                ids = [one.id for one in await self._of_run(opener(), sandbox_owner().run_id)]

                async def take_away() -> None:
                    await self.ticking(box)
                    await opener().remove(ids)

                with anyio.fail_after(NOTICED):
                    async with anyio.create_task_group() as group:
                        group.start_soon(take_away)
                        with pytest.raises(SandboxBrokenError) as raised:
                            await box.exec(["sh", "-c", "echo . > ticks; sleep 600"])

                assert str(raised.value).strip()
                with pytest.raises(SandboxBrokenError), anyio.fail_after(NOTICED):
                    await box.exec(["echo", "hello"])

    @check("sandbox.named", needs="named")
    async def test_a_sample_may_have_several_that_are_apart(self, driver: SandboxDriver) -> None:
        async with self.made(driver, self.services) as envs:
            assert len(envs) > 1, "`services` is a configuration with several"
            boxes: dict[str, SandboxEnvironment] = dict(envs)
            for name, box in boxes.items():
                await box.write_file("name", name)
            said = {name: await self.sh(box, "cat name") for name, box in boxes.items()}

        assert said == {name: name for name in boxes}

    async def _of_run(self, driver: SandboxDriver, run_id: str) -> list[RunningSandbox]:
        return [one for one in await driver.sandboxes() if one.owner is not None and one.owner.run_id == run_id]

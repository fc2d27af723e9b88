"""Whose a sandbox is, and what is left of runs that have died."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest
from child_processes import running
from hypothesis import given
from hypothesis import strategies as st

from proctor.contracts import (
    RunningSandbox,
    SandboxBrokenError,
    SandboxDriver,
    SandboxEnvironment,
    SandboxOwner,
)
from proctor.sandbox import configure_sandboxes, sandbox_owner

HERE = SandboxOwner.of_this_process("run1", task="quiz", sample="s1", epoch=2)


def test_an_owner_is_read_back_from_its_labels_among_others() -> None:
    for owner in (HERE, replace(HERE, keep=True)):
        assert SandboxOwner.from_labels({**owner.labels(), "other": "x"}) == owner


@given(
    st.dictionaries(st.sampled_from([*HERE.labels(), "proctor.", "other"]), st.text()),
    st.lists(st.sampled_from(sorted(HERE.labels())), max_size=2),
)
def test_labels_of_any_text_are_an_owner_or_none(others: dict[str, str], without: list[str]) -> None:
    labels = {name: value for name, value in {**HERE.labels(), **others}.items() if name not in without}
    found = SandboxOwner.from_labels(labels)
    assert found is None or SandboxOwner.from_labels(found.labels()) == found


CHILD = """
import json
from proctor.contracts import SandboxOwner
print(json.dumps(SandboxOwner.of_this_process("run1").labels()), flush=True)
input()
"""


def told(child: subprocess.Popen[Any]) -> SandboxOwner:
    assert child.stdout is not None
    owner = SandboxOwner.from_labels(json.loads(child.stdout.readline()))
    assert owner is not None
    return owner


def test_a_process_is_alive_while_it_goes_on_and_known_by_its_start() -> None:
    with running([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        owner = told(child)
        assert (owner.pid, owner.alive()) == (child.pid, True)
        assert replace(owner, started="0-0").alive() is False  # another process that was given the same number
    assert owner.alive() is False


def test_a_process_that_ended_and_was_not_waited_for_is_dead() -> None:
    with running([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        owner = told(child)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert owner.alive() is False


def test_of_a_process_elsewhere_nothing_is_known() -> None:
    assert replace(HERE, host="elsewhere-1234").alive() is None
    assert replace(HERE, started="").alive() is None


def test_outside_of_a_run_this_process_is_the_owner_and_a_run_has_its_own_id() -> None:
    outside = sandbox_owner()
    assert (outside.pid, outside.sample, outside.epoch) == (os.getpid(), "", 0)
    assert outside == sandbox_owner()
    with configure_sandboxes(run_id="run7"):
        assert sandbox_owner() == replace(outside, run_id="run7")


class Engine(SandboxDriver):
    """Has sandboxes of several owners."""

    def __init__(self, *owners: SandboxOwner | None) -> None:
        self.there = {f"box{number}": owner for number, owner in enumerate(owners)}

    async def sample_init(self, task: str, config: Any, metadata: dict[str, Any]) -> dict[str, SandboxEnvironment]:
        raise NotImplementedError

    async def sample_cleanup(self, envs: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        raise NotImplementedError

    async def sandboxes(self) -> list[RunningSandbox]:
        await anyio.lowlevel.checkpoint()
        return [RunningSandbox(id, owner, "running", None, None) for id, owner in self.there.items()]

    async def remove(self, ids: Sequence[str]) -> list[str]:
        await anyio.lowlevel.checkpoint()
        return [id for id in ids if self.there.pop(id, self) is not self]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("run_id", "gone"),
    [(None, ["box1", "box2"]), ("run1", ["box1"]), ("run9", []), ("run3", ["box5"])],
)
async def test_reaping_takes_away_what_dead_runs_left_and_nothing_else(run_id: str | None, gone: list[str]) -> None:
    dead = replace(HERE, started="0-0")
    kept = replace(dead, run_id="run3", keep=True)
    driver = Engine(HERE, dead, replace(dead, run_id="run2"), replace(dead, host="elsewhere"), None, kept)
    assert await driver.reap(run_id) == gone
    assert sorted(driver.there) == sorted({f"box{number}" for number in range(6)} - set(gone))


def test_a_broken_sandbox_says_what_the_engine_says_and_its_last_lines() -> None:
    error = SandboxBrokenError("the container is gone", "exited (137)", "one\n\ntwo\n")
    assert str(error) == "the container is gone; state: exited (137); last lines of its log: one | two"
    assert str(SandboxBrokenError("no answer for 30 s")) == "no answer for 30 s"

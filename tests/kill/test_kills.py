"""``kill -9`` at seeded moments: nothing that was acknowledged is lost, and nothing of it is asked for twice.

Real runs and resumes, against a server that counts; `nox -s kill` has more seeds.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from kill_outcome import Judge
from kill_plan import Moment, Plan, plan_of
from kill_server import CountingServer
from kill_world import World

from proctor.log import read_eval_log, recover_eval_log

SEEDS = range(10)  # each has another moment; five are killed again in their resume, three are sets


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_that_is_killed_and_resumed_comes_to_what_it_would_have_come_to(judge: Judge, seed: int) -> None:
    assert judge.play(plan_of(seed)).faults == []


@pytest.mark.slow
@pytest.mark.parametrize("format", ["eval", "json"])
def test_a_log_that_was_recovered_is_gone_on_with_like_the_one_of_the_killed_run(
    server: CountingServer, tmp_path: Path, format: str
) -> None:
    # given a run that was killed, and its log, recovered beside it
    server.fresh()
    world = World(tmp_path, server, Plan(0, format, "asyncio", 1, ()))
    assert world.evaluate(Moment("told", 40)) == -signal.SIGKILL, world.output
    # when somebody goes on from the recovered one
    assert world.resume(recover_eval_log(world.logs[0])) == 0, world.output
    # then nothing of what was acknowledged is asked for again, and the new log has it all
    assert server.again == []
    assert len(read_eval_log(world.last()["asks"]).samples or ()) == world.plan.total


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other kernels let a process have more memory than its limit")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_what_was_acknowledged_before_the_memory_was_used_up_is_read_from_the_log(
    server: CountingServer, tmp_path: Path, backend: str
) -> None:
    # given a run whose process gets no more memory from the 20th sample on
    world = World(tmp_path, server, Plan(0, "eval", backend, 1, ()))
    # then it gets by, fails in an orderly way, is aborted by a library that can't go on, or stands still and is killed
    ends = (0, 1, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGKILL)
    assert world.evaluate(Moment("memory", 20)) in ends, world.output
    assert len(world.acknowledged) >= 20
    assert world.check_readable() + world.check_recovered() == []

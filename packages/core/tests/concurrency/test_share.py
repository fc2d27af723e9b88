"""Limits that processes share: real processes, killed for real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from child_processes import running

from proctor.concurrency import _share
from proctor.concurrency._share import SharedGate, SharedPool, shared_pool
from proctor.contracts import UsageError
from proctor.monitor._runtime import runtime_dir

HOLDER = """
import sys, time
from pathlib import Path
from proctor.concurrency._share import SharedPool
pool = SharedPool(Path(sys.argv[1]))
taken = sum(pool.take(int(sys.argv[2]), static=True) for _ in range(int(sys.argv[3])))
if len(sys.argv) > 4:
    pool.wait(int(sys.argv[4]))
print(taken, flush=True)
while True:
    pool.look()
    time.sleep(0.02)
"""


@contextmanager
def holder(path: Path, limit: int, wanted: int, waiting: int | None = None) -> Iterator[tuple[int, int]]:
    """A process that holds places; its pid and how many it got."""
    more = [] if waiting is None else [str(waiting)]
    command = [sys.executable, "-c", HOLDER, str(path), str(limit), str(wanted), *more]
    with running(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())


def killed(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_two_processes_together_hold_no_more_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "pool"
    pool = SharedPool(path)
    with holder(path, 10, 7) as (pid, got):
        assert got == 7
        taken = sum(pool.take(10, static=True) for _ in range(10))
        assert taken == 3
        assert {row.process: row.held for row in pool.rows()} == {pid: 7, os.getpid(): 3}


def test_what_a_killed_process_held_is_free(tmp_path: Path) -> None:
    path = tmp_path / "pool"
    pool = SharedPool(path)
    with holder(path, 10, 10) as (pid, got):
        assert got == 10
        assert not pool.take(10, static=True)
        killed(pid)
        assert [row.process for row in pool.rows()] == [os.getpid()]
        assert all(pool.take(10, static=True) for _ in range(10))
        assert not pool.take(10, static=True)


def test_the_smaller_of_two_limits_holds(tmp_path: Path) -> None:
    path = tmp_path / "pool"
    pool = SharedPool(path)
    gate = SharedGate("shared", 40, pool)
    assert gate.room == 40
    with holder(path, 4, 2):
        assert sum(pool.take(40, static=True) for _ in range(40)) == 2
        assert (gate.room, gate.limit) == (4, 40)
    pool.rows()
    assert pool.take(40, static=True)  # the other's limit went with it


def test_who_has_more_leaves_the_place_to_who_waits(tmp_path: Path) -> None:
    path = tmp_path / "pool"
    pool = SharedPool(path)
    for _ in range(5):
        assert pool.take(10, static=True)
    with holder(path, 10, 2, waiting=3):
        assert not pool.take(10, static=True)
    pool.rows()
    assert pool.take(10, static=True)


def test_a_new_adaptive_limit_is_seen_by_all(tmp_path: Path) -> None:
    path = tmp_path / "pool"
    pool = SharedPool(path)
    assert pool.take(40, static=False)
    before = pool.generation
    code = "import sys; from pathlib import Path; from proctor.concurrency._share import SharedPool as P\n"
    subprocess.run([sys.executable, "-c", code + "P(Path(sys.argv[1])).publish(17)", str(path)], check=True, timeout=60)
    assert (pool.adaptive, pool.generation) == (17, before + 1)


def test_the_first_to_come_finds_nothing_of_those_that_left(tmp_path: Path) -> None:
    path = tmp_path / "pool"
    code = "import sys; from pathlib import Path; from proctor.concurrency._share import SharedPool as P\n"
    code += "p = P(Path(sys.argv[1])); p.publish(3); p.pay(1e12, 60.0, 0.0); p.take(3, static=True)"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)
    pool = SharedPool(path)
    assert pool.adaptive == 0
    assert pool.pay(1.0, 1.0, 0.0) == 0.0
    assert all(pool.take(10, static=True) for _ in range(10))


def test_a_budget_is_one_for_all_and_nothing_is_booked_ahead(tmp_path: Path) -> None:
    pool = SharedPool(tmp_path / "pool")
    now = 1000.0
    assert pool.pay(now, 1.0, 0.0) == 0.0
    for _ in range(5):  # who only asks takes nothing: neither from itself, nor from others when it is killed
        assert pool.pay(now, 1.0, 0.0) == 1.0
    assert pool.pay(now, 0.0, 5.0) == 0.0  # tokens are counted apart
    assert pool.pay(now + 1, 1.0, 2.0) == 4.0  # one budget is short: none is charged
    assert pool.pay(now + 1, 1.0, 0.0) == 0.0
    pool.charge(now + 1, 3.0)
    assert pool.pay(now + 1, 0.0, 1.0) == 7.0
    pool.charge(now + 1, -7.0)
    assert pool.pay(now + 1, 0.0, 1.0) == 0.0
    assert pool.pay(now + 50, 1.0, 0.0) == 0.0  # nothing is saved up
    assert pool.pay(now + 50, 1.0, 0.0) == 1.0


@pytest.mark.anyio
async def test_a_shared_gate_hands_places_on_and_polls_for_those_of_others(tmp_path: Path) -> None:
    path = tmp_path / "pool"
    gate = SharedGate("shared", 4, SharedPool(path))
    passed = 0

    async def one() -> None:
        nonlocal passed
        async with gate:
            await anyio.lowlevel.checkpoint()
            passed += 1

    with holder(path, 4, 4) as (pid, got):
        assert got == 4
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(one)
            await anyio.wait_all_tasks_blocked()
            assert (gate.waiting, passed) == (20, 0)
            killed(pid)
            gate.pool.rows()  # looks for the dead at once
            gate.poll()
    assert passed == 20
    assert (gate.held, gate.waiting) == (0, 0)
    assert [row[1:3] for row in gate.pool.rows()] == [(0, 0)]


@pytest.mark.anyio
async def test_a_cancelled_waiter_leaves_no_trace(tmp_path: Path) -> None:
    gate = SharedGate("shared", 1, SharedPool(tmp_path / "pool"))
    await gate.acquire()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gate.acquire)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    gate.release()
    assert (gate.held, gate.waiting, [row[1:3] for row in gate.pool.rows()]) == (0, 0, [(0, 0)])


def test_the_folder_is_this_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert runtime_dir() == tmp_path / "proctor"
    assert (tmp_path / "proctor").stat().st_mode & 0o777 == 0o700
    (tmp_path / "proctor").chmod(0o777)
    with pytest.raises(UsageError, match="only you"):
        runtime_dir()


def test_one_pool_for_one_name_and_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert shared_pool("a", "key") is shared_pool("a", "key")
    assert shared_pool("a", "key") is not shared_pool("b", "key")
    with pytest.raises(UsageError, match="no name"):
        shared_pool("../a", "key")


def test_a_forked_child_opens_pools_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a thread of the parent, which is not in the child, was doing at that moment."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(_share, "_pools", {})
    monkeypatch.setattr(_share, "_pools_lock", _share._pools_lock)
    pool = shared_pool("run", "key")
    with _share._pools_lock:
        _share._forget_pools()
        assert not _share._pools_lock.locked()
    assert shared_pool("run", "key") is not pool


STOPPED = """
import fcntl, os, signal, sys
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.lockf(file, fcntl.LOCK_EX, 1, 0)
print("has it", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.timeout(60)
def test_a_process_that_is_stopped_in_mid_change_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "pool"
    pool = SharedPool(path)
    with running([sys.executable, "-c", STOPPED, str(path)], stdout=subprocess.PIPE) as process:
        # given a process that holds the lock and does not go on
        assert process.stdout is not None and process.stdout.readline() == b"has it\n"
        # when places are taken, then nobody counts on it while it may be only a moment late
        assert not pool.take(2, static=True)
        assert pool.pay(1.0, 60.0, 0.0) > 0.0
        # and later, the limit and the budget hold without it
        monkeypatch.setattr(_share, "_STOPPED", -1.0)
        assert [pool.take(2, static=True) for _ in range(3)] == [True, True, False]
        assert (pool.pay(1.0, 60.0, 0.0), pool.pay(1.0, 60.0, 0.0)) == (0.0, 60.0)
        pool.give()
        assert pool.publish(7) == pool.generation
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
    # and with the lock back, all is as it was
    monkeypatch.undo()
    assert pool.take(2, static=True) and not pool.take(2, static=True)
    assert (pool.adaptive, [row.held for row in pool.rows()]) == (7, [2])


FORKS = """
import json, os, sys
from pathlib import Path
from proctor.concurrency._share import SharedGate, SharedPool
gate = SharedGate("shared", 3, SharedPool(Path(sys.argv[1])))
pool = gate.pool
assert gate.try_acquire() and gate.try_acquire()
with pool._thread_lock:  # as a thread might that the child does not have
    child = os.fork()
if child == 0:
    taken = [pool.take(3, static=True), pool.take(3, static=True)]
    pool.give()
    pool.give()
    print(json.dumps([taken, {row.process == os.getpid(): row.held for row in pool.rows()}]), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(json.dumps({row.process == os.getpid(): row.held for row in pool.rows()}))
"""


@pytest.mark.timeout(60)
def test_a_forked_child_has_a_row_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKS, str(tmp_path / "pool")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ['[[true, false], {"false": 2, "true": 0}]', '{"true": 2}']

"""A log is resumed or edited by one process at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from child_processes import running

from proctor.contracts import LogBusyError, LogLease, LogStore
from proctor.log import FileStore, MemoryStore

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="logs on Windows have no lease")

HOLDS = """
import sys
from proctor.log import FileStore
with FileStore().hold(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(params=["file", "memory"])
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[LogStore, str]]:
    """A store, and the name of a finished log in it."""
    store: LogStore = FileStore() if request.param == "file" else MemoryStore()
    name = str(tmp_path / "a.eval")
    sink = store.create(name)
    sink.commit(b"content", b"")
    sink.close()
    yield store, name
    if request.param == "memory":
        store.delete(name)


def test_a_log_is_held_by_one_until_it_is_let_go(at: tuple[LogStore, str]) -> None:
    store, name = at
    with store.hold(name) as lease:
        assert store.live(name)
        with pytest.raises(LogBusyError, match=rf"a\.eval is in use by process {os.getpid()} on"):
            store.hold(name)
    lease.close()  # harmless when called twice

    assert not store.live(name)
    store.hold(name).close()


def test_a_log_that_is_written_is_not_to_be_held(at: tuple[LogStore, str]) -> None:
    store, name = at
    sink = store.create(name + "-live")

    with pytest.raises(LogBusyError):
        store.hold(name + "-live")

    sink.close()
    store.hold(name + "-live").close()
    store.delete(name + "-live")


def test_a_log_that_is_not_there_is_not_to_be_held(at: tuple[LogStore, str]) -> None:
    store, name = at
    with pytest.raises(FileNotFoundError):
        store.hold(name + "-missing")


def test_the_lease_stays_with_the_name_when_its_holder_replaces_the_log(at: tuple[LogStore, str]) -> None:
    store, name = at
    with store.hold(name):
        store.replace(name, [b"edited"])

        assert store.live(name)
        with pytest.raises(LogBusyError):
            store.hold(name)

    assert store.read(name) == b"edited" and not store.live(name)


def test_of_many_threads_one_gets_the_lease(at: tuple[LogStore, str]) -> None:
    store, name = at
    leases: list[LogLease] = []
    refused: list[LogBusyError] = []
    together = threading.Barrier(8)

    def hold() -> None:
        together.wait()
        try:
            leases.append(store.hold(name))
        except LogBusyError as error:
            refused.append(error)

    threads = [threading.Thread(target=hold) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(leases), len(refused)) == (1, 7)
    leases[0].close()


def test_a_replacement_that_fails_leaves_the_lease_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, name = FileStore(), str(tmp_path / "a.eval")
    store.replace(name, [b"old"])

    def refused(*args: object) -> None:
        raise PermissionError

    with store.hold(name):
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", refused)
            with pytest.raises(PermissionError):
                store.replace(name, [b"new"])

        with pytest.raises(LogBusyError):
            store.hold(name)
    store.hold(name).close()


def test_the_lease_of_a_killed_process_is_free(tmp_path: Path) -> None:
    # given a process that holds a log
    store, name = FileStore(), str(tmp_path / "a.eval")
    store.replace(name, [b"content"])
    with running([sys.executable, "-c", HOLDS, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"held\n"
        with pytest.raises(LogBusyError) as refused:
            store.hold(name)
        if sys.platform == "linux":
            assert refused.value.pid is not None and refused.value.host
        # when it is killed
        child.kill()
        child.wait(30)

    # then nobody holds it
    store.hold(name).close()


def test_a_store_without_leases_refuses_what_is_live_and_holds_nothing(tmp_path: Path) -> None:
    class Plain(FileStore):
        hold = LogStore.hold

    store, name = Plain(), str(tmp_path / "a.eval")
    sink = store.create(name)
    with pytest.raises(LogBusyError, match="in use by another process"):
        store.hold(name)
    sink.close()

    with store.hold(name), store.hold(name):
        pass
    with pytest.raises(FileNotFoundError):
        store.hold(name + "-missing")


def test_the_error_says_who_and_since_when() -> None:
    error = LogBusyError("a.eval", host="node7", pid=42, since=0.0)

    assert str(error) == (
        "a.eval is in use by process 42 on node7 since 1970-01-01 00:00:00 UTC. "
        "Wait until it is done, or stop it first."
    )

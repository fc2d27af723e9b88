"""A store that is lost costs no sample: the log goes on here, and is sent later."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from log_samples import sample, spec, stats
from lost_store import GONE, UNREACHABLE, LostStore

from proctor import Task, eval
from proctor.cli import main
from proctor.contracts import LogBusyError, LogLease, UsageError
from proctor.engine import run
from proctor.log import (
    EvalLog,
    FileStore,
    LogWriter,
    Patience,
    _patience,
    _spill,
    list_spills,
    push_spill,
    read_eval_log,
    read_spill,
    write_eval_log,
)
from proctor.schema import EvalPlan, Sample


@pytest.fixture(autouse=True)
def lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[LostStore]]:
    """What `memory://` means in these tests; nothing is waited for."""
    monkeypatch.setenv("PROCTOR_SPILL_DIR", str(tmp_path / "spill"))
    monkeypatch.setenv("PROCTOR_STORE_PATIENCE", "0")
    monkeypatch.setattr("proctor.log._memory_store.MemoryStore", LostStore)
    monkeypatch.setattr(_patience, "_RETRY", 0.001)
    yield LostStore
    LostStore.error, LostStore.on_write, LostStore.writes = None, None, 0
    _spill._given_up.clear()


def opened(tmp_path: Path, told: list[tuple[str, str]] | None = None, **options: Any) -> LogWriter:
    return LogWriter.open(
        f"memory://{tmp_path}",
        spec(),
        EvalPlan(),
        on_spill=lambda path, why: None if told is None else told.append((path, why)),
        **options,
    )


def ids(location: str) -> list[int | str]:
    return [one.id for one in read_eval_log(location).samples or []]


def lose_at(write: int, error: OSError) -> None:
    """The store is lost at its ``write``-th write from now on."""
    LostStore.writes = 0

    def look(number: int) -> None:
        if number == write:
            LostStore.error = error

    LostStore.on_write = look


@pytest.mark.parametrize("format", ["eval", "json"])
@pytest.mark.parametrize("write", [1, 2, 3, 4, 5])
def test_a_store_that_is_lost_at_any_write_loses_no_sample(tmp_path: Path, format: Any, write: int) -> None:
    # given a run whose store is gone from some write on
    told: list[tuple[str, str]] = []
    writer = opened(tmp_path, told, format=format)
    belongs = writer.location
    lose_at(write, GONE)
    # when it goes on to its end
    acknowledged: list[object] = []
    for id in range(1, 4):
        writer.write(sample(id), on_ack=lambda row: acknowledged.append(row["id"]))
    location = writer.finish("success", None, stats())
    # then the log is whole: where it belongs when the store held out, here otherwise
    assert acknowledged == [1, 2, 3]
    assert ids(location) == [1, 2, 3] and read_eval_log(location, header_only=True).status == "success"
    if not told:
        assert location == belongs and list_spills() == []
        return
    [(path, why)] = told
    assert (location, why) == (path, "there is no bucket 'b'")
    assert [(spill.path, spill.location) for spill in list_spills()] == [(path, belongs)]
    # and when the store is back, it is sent
    LostStore.error = LostStore.on_write = None
    pushed = push_spill(read_spill(path))
    assert pushed.location == belongs
    assert ids(belongs) == [1, 2, 3]
    assert list_spills() == [] and os.listdir(tmp_path / "spill") == []


def test_a_store_that_comes_back_in_time_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_STORE_PATIENCE", "60")
    patience = Patience()
    said: list[str | None] = []
    writer = opened(tmp_path, patience=patience)

    def look(number: int) -> None:
        said.append(patience.stalled)
        LostStore.error = UNREACHABLE if number < 4 else None

    LostStore.writes, LostStore.on_write = 0, look
    writer.write(sample(1))
    location = writer.finish("success", None, stats())

    assert location.startswith("memory://") and ids(location) == [1]
    assert said[0] is None and "the store can't be reached" in (said[1] or "") and patience.stalled is None


def test_who_is_in_a_hurry_has_the_log_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_STORE_PATIENCE", "1e9")
    monkeypatch.setattr(_patience, "_HURRY", 0.0)
    patience = Patience()
    writer = opened(tmp_path, patience=patience)
    LostStore.error = UNREACHABLE
    patience.hurry()
    writer.write(sample(1))

    assert ids(writer.finish("cancelled", None, stats())) == [1]
    assert len(list_spills()) == 1


def test_a_run_that_is_killed_leaves_no_copy_behind(tmp_path: Path) -> None:
    # A file without a name: while the store is there, nothing is to be seen.
    writer = opened(tmp_path)
    writer.write(sample(1))

    assert os.listdir(tmp_path / "spill") == []
    writer.finish("success", None, stats())


def test_a_run_says_where_its_log_goes_on_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lose_at(3, GONE)
    task = Task(dataset=[Sample(input=str(n), target="4", id=n) for n in range(3)], name="t")

    result = run(task, "mock/model", {"log_dir": f"memory://{tmp_path}", "display": "plain"})

    [spill] = list_spills()
    said = " ".join("".join(capsys.readouterr()).split())
    assert result.exit_code == 1
    assert "there is no bucket 'b'" in said and "proctor log push" in said
    assert result.logs[0].location == spill.path and len(ids(spill.path)) == 3


def test_evaluations_that_begin_after_their_store_was_lost_are_kept_here_and_sent_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # given a run of two tasks, one after the other, whose store is gone before the second has a log
    lose_at(3, GONE)
    tasks = [Task(dataset=[Sample(input="q", target="4", id=1)], name=name) for name in ("first", "second")]

    result = run(tasks, "mock/model", {"log_dir": f"memory://{tmp_path}", "display": "plain", "max_tasks": 1})

    # then both are done, and their logs wait
    waiting = list_spills()
    assert result.exit_code == 1
    assert sorted(log.location for log in result.logs) == sorted(spill.path for spill in waiting)
    assert [ids(spill.path) for spill in waiting] == [[1], [1]]
    assert "there is no bucket 'b'" in " ".join("".join(capsys.readouterr()).split())
    LostStore.error = LostStore.on_write = None
    assert [ids(push_spill(spill).location) for spill in waiting] == [[1], [1]] and list_spills() == []


def test_a_store_that_was_given_up_is_tried_once_for_later_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a store that one log has given up, though others would wait for long
    monkeypatch.setenv("PROCTOR_STORE_PATIENCE", "1e9")
    writer = opened(tmp_path)
    LostStore.error = GONE
    writer.write(sample(1))
    writer.finish("success", None, stats())
    # when it can't be reached for others
    LostStore.error, LostStore.writes = UNREACHABLE, 0
    others = [opened(tmp_path) for _ in range(2)]
    # then they begin here at once
    assert LostStore.writes == 2
    for each in others:
        each.finish("success", None, stats())
    # and where it is back, it is waited for again
    LostStore.error = None
    assert opened(tmp_path).finish("success", None, stats()).startswith("memory://")
    assert _spill.patience_for(f"memory://{tmp_path}") == 1e9


def test_the_lease_of_its_own_run_does_not_keep_a_log_from_being_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a store in which the run could not give up its lease
    path, belongs = spilled(tmp_path)
    holder = [socket.gethostname(), os.getpid() + 1]

    def held(self: LostStore, name: str) -> LogLease:
        raise LogBusyError(name, host=str(holder[0]), pid=int(holder[1]))

    monkeypatch.setattr(LostStore, "hold", held)
    # then somebody else's is respected, its own is not
    with pytest.raises(LogBusyError):
        push_spill(read_spill(path))
    holder[1] = os.getpid()
    assert push_spill(read_spill(path)).location == belongs


def spilled(tmp_path: Path) -> tuple[str, str]:
    """A log that waits: where it is, and where it belongs."""
    writer = opened(tmp_path)
    belongs = writer.location
    writer.write(sample(1))
    LostStore.error = GONE
    path = writer.finish("success", None, stats())
    LostStore.error = None
    assert path != belongs
    return path, belongs


def test_a_push_that_broke_off_after_sending_sends_nothing_again(tmp_path: Path) -> None:
    path, belongs = spilled(tmp_path)
    LostStore().replace(belongs.removeprefix("memory://"), [Path(path).read_bytes()])
    LostStore.writes = 0

    assert not push_spill(read_spill(path)).sent
    assert LostStore.writes == 0 and list_spills() == []


def test_a_push_to_a_store_that_is_still_away_keeps_the_log(tmp_path: Path) -> None:
    path, _ = spilled(tmp_path)
    LostStore.error = UNREACHABLE

    with pytest.raises(OSError, match="can't be reached"):
        push_spill(read_spill(path))

    assert [spill.path for spill in list_spills()] == [path]


def test_a_store_that_keeps_something_else_than_was_sent_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = spilled(tmp_path)
    keep = LostStore.replace
    monkeypatch.setattr(LostStore, "replace", lambda self, name, chunks, etag=None: keep(self, name, [b"cut"]))

    with pytest.raises(OSError, match="something else than was sent"):
        push_spill(read_spill(path))

    assert ids(path) == [1]


def test_another_log_that_stands_there_is_not_replaced(tmp_path: Path) -> None:
    path, belongs = spilled(tmp_path)
    write_eval_log(EvalLog(eval=spec(), status="success", samples=[]), belongs)

    with pytest.raises(UsageError, match="is another log"):
        push_spill(read_spill(path))

    assert list_spills()


def test_a_log_that_was_recovered_in_its_place_is_not_replaced(tmp_path: Path) -> None:
    path, belongs = spilled(tmp_path)
    other = read_eval_log(path)
    other.status = "error"
    write_eval_log(other, belongs)

    with pytest.raises(UsageError, match="changed or recovered"):
        push_spill(read_spill(path))


def test_a_log_whose_run_is_alive_is_not_pushed(tmp_path: Path) -> None:
    path, _ = spilled(tmp_path)

    with FileStore().hold(path), pytest.raises(UsageError, match="alive"):
        push_spill(read_spill(path))


def push(capsysbinary: Any, *arguments: str) -> tuple[int, str, str]:
    code = main(["log", "push", *arguments])
    out, err = capsysbinary.readouterr()
    return code, out.decode(), " ".join(err.decode().split())


def test_the_command_lists_and_sends(tmp_path: Path, capsysbinary: Any) -> None:
    path, belongs = spilled(tmp_path)

    code, listed, _ = push(capsysbinary)
    assert code == 0 and path in listed and belongs in listed and "--all" in listed
    assert json.loads(push(capsysbinary, "--json")[1])[0]["location"] == belongs
    assert "sent" in push(capsysbinary, "--all")[1]
    assert "No log waits" in push(capsysbinary, "--all")[1] and "No log waits" in push(capsysbinary)[1]
    assert json.loads(push(capsysbinary, "--all", "--json")[1]) == []
    assert ids(belongs) == [1]


def test_the_command_says_what_could_not_be_sent(tmp_path: Path, capsysbinary: Any) -> None:
    path, _ = spilled(tmp_path)
    LostStore.error = UNREACHABLE
    for arguments, said in {
        (path,): "can't be reached",
        (path, "--all"): "not both",
        (str(tmp_path / "none.eval"),): "no log that waits",
    }.items():
        code, _, errors = push(capsysbinary, *arguments)
        assert code == 2 and said in errors


def test_a_patience_that_is_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_STORE_PATIENCE", "long")

    with pytest.raises(UsageError, match="PROCTOR_STORE_PATIENCE is 'long'"):
        opened(tmp_path)


def test_a_local_store_has_no_copy(tmp_path: Path) -> None:
    task = Task(dataset=[Sample(input="1", target="4")], name="t")
    eval(task, model="mock/model", log_dir=str(tmp_path / "logs"), display="none")

    assert not (tmp_path / "spill").exists()

"""A log that somebody is writing: readers see it before a commit or after it, never between."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from log_commits import Commit, commits
from log_samples import sample, spec, stats

from proctor.contracts import LogSink
from proctor.log import (
    BadLogError,
    FileStore,
    LogWriter,
    _file_lease,
    _steady,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
    read_eval_log_samples,
    write_eval_log,
)
from proctor.schema import EvalPlan

FORMATS: list[Literal["eval", "json"]] = ["eval", "json"]
NAME = "2026-11-29T11-27-19-00-00_task_id"


def ids(path: Path) -> list[int | str]:
    return [one.id for one in read_eval_log(path).samples or []]


def header(path: Path) -> list[int | str]:
    """The ids that a header says the dataset has."""
    return list(read_eval_log(path, header_only=True).eval.dataset.sample_ids or ())


def summaries(path: Path) -> list[int | str]:
    return [row.id for row in read_eval_log_sample_summaries(path)]


def page(path: Path) -> list[int | str]:
    return [row.id for row in read_eval_log_sample_summaries(path, limit=9)]


def stream(path: Path) -> list[int | str]:
    found = read_eval_log(path, header_only=True).status == "success"
    return [one.id for one in read_eval_log_samples(path)] if found else []


def one(path: Path) -> list[int | str]:
    return [read_eval_log_sample(path, id).id for id in summaries(path)]


def listed(path: Path) -> list[int | str]:
    found = list_eval_logs(str(path.parent), filter=lambda log: len(log.eval.dataset.sample_ids or ()) == 3)
    return [1, 2, 3] if [info.name for info in found] == [str(path)] else []


READERS: list[Callable[[Path], list[int | str]]] = [ids, header, summaries, page, stream, one, listed]


class Writing:
    """A log with a living writer, which is in the middle of a commit whenever ``torn`` was called."""

    def __init__(self, path: Path) -> None:
        self.path, self.waits = path, 0
        self._commit: Commit | None = None
        self._sink: LogSink | None = FileStore().create(str(path))  # holds the lock

    def torn(self, commit: Commit, done: int) -> None:
        self._commit, self.waits = commit, 0
        self.path.write_bytes(commit.cut(done))

    def go_on(self, seconds: float) -> None:
        """In the place of a pause: the writer comes to the end of its commit."""
        assert self._commit is not None
        self.waits += 1
        self.path.write_bytes(self._commit.after)

    def close(self) -> None:
        if self._sink is not None:
            self._sink.close()
            self._sink = None


@pytest.fixture(params=FORMATS)
def writing(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = Writing(tmp_path / "live" / f"{NAME}.{request.param}")
    monkeypatch.setattr(_steady, "_wait", found.go_on)
    yield found
    found.close()


def run(writing: Writing, tmp_path: Path) -> list[Commit]:
    format: Any = writing.path.suffix[1:]
    return commits(tmp_path / "run", format)


@pytest.mark.parametrize("read", READERS)
def test_a_commit_that_is_seen_in_part_is_read_again(writing: Writing, tmp_path: Path, read: Any) -> None:
    # given a log whose writer stands at some byte of a commit, and goes on when a reader pauses
    waits = 0
    for commit in run(writing, tmp_path):
        writing.path.write_bytes(commit.after)
        after = read(writing.path)
        before = None
        if commit.before:
            writing.path.write_bytes(commit.before)
            before = read(writing.path)
        for done in range(0, len(commit.write), 61):
            writing.torn(commit, done)
            # when it is read, then the reader sees the log as it was, or as it will be
            assert read(writing.path) in (before, after)
            waits += writing.waits
    assert waits  # and had to wait for that


def test_samples_are_never_fewer_than_what_a_whole_commit_had(writing: Writing, tmp_path: Path) -> None:
    # given a commit of which all but the end is written
    commit = run(writing, tmp_path)[1]
    writing.path.write_bytes(commit.after)
    after = ids(writing.path)
    writing.torn(commit, len(commit.write) - 9)
    # when it is read, then the reader waits, though members are known by their own headers, too
    assert ids(writing.path) == after and writing.waits == 1


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("format", FORMATS)
def test_a_commit_between_any_two_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: Literal["eval", "json"], read: Any
) -> None:
    # given a log, and a commit to it between two accesses of one reader
    path = tmp_path / "live" / f"{NAME}.{format}"
    sink = FileStore().create(str(path))
    raw, accesses, moment = FileStore.read, 0, 0

    def spy(self: FileStore, name: str, start: int = 0, end: int | None = None) -> bytes:
        nonlocal accesses
        accesses += 1
        if accesses == moment:
            path.write_bytes(commit.after)
        return raw(self, name, start, end)

    monkeypatch.setattr(FileStore, "read", spy)
    monkeypatch.setattr(_steady, "_wait", lambda seconds: None)
    for commit in commits(tmp_path / "run", format)[1:]:
        path.write_bytes(commit.after)
        after, accesses = read(path), 0
        path.write_bytes(commit.before)
        before, count = read(path), accesses
        for number in range(1, count + 1):
            path.write_bytes(commit.before)
            accesses, moment = 0, number
            # when it is read, then it is read without a fault
            assert set(before) <= set(read(path)) <= set(after)
        moment = 0
    sink.close()


@pytest.mark.parametrize("format", FORMATS)
def test_a_log_of_a_dead_writer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: Literal["eval", "json"]
) -> None:
    monkeypatch.setattr(_steady, "_wait", lambda seconds: pytest.fail("nobody writes this log"))
    path, commit = tmp_path / f"{NAME}.{format}", commits(tmp_path / "run", format)[1]
    path.write_bytes(commit.after)
    after = ids(path)
    path.write_bytes(commit.cut(len(commit.write) - 9))
    if format == "eval":  # what has a header and a checksum of its own is whole
        assert ids(path) == after
    else:
        with pytest.raises(BadLogError, match="proctor log recover"):
            ids(path)


def test_waiting_has_an_end(writing: Writing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a writer that stands still in the middle of a commit
    pauses: list[float] = []
    monkeypatch.setattr(_steady, "_wait", pauses.append)
    commit = run(writing, tmp_path)[1]
    writing.path.write_bytes(commit.after)
    after = ids(writing.path)
    writing.torn(commit, len(commit.write) - 9)
    # when its log is read
    if writing.path.suffix == ".eval":
        assert ids(writing.path) == after
    else:
        with pytest.raises(BadLogError, match="being written now"):
            ids(writing.path)
    # then that ends after a number of growing pauses
    assert pauses == sorted(pauses) and 5 < len(pauses) < 20 and sum(pauses) < 10


def test_a_log_that_was_just_created(writing: Writing, tmp_path: Path) -> None:
    writing.torn(run(writing, tmp_path)[0], 0)
    assert ids(writing.path) == [] and writing.waits == 1


def test_a_log_that_is_replaced_while_its_samples_are_read(tmp_path: Path) -> None:
    # given a reader that goes through a log
    path = tmp_path / f"{NAME}.eval"
    path.write_bytes(commits(tmp_path / "run", "eval")[-1].after)
    samples = read_eval_log_samples(path)
    assert next(samples).id == 1
    # when somebody else writes it anew, and everything in it stands elsewhere
    log = read_eval_log(path, header_only=True)
    log.eval.metadata = {"more": "words " * 1000}
    write_eval_log(log, path)
    # then it comes to the end
    assert [one.id for one in samples] == [2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_readers_of_a_run_never_see_a_torn_log(tmp_path: Path, format: Literal["eval", "json"]) -> None:
    # given a run that goes on on a thread of its own
    count, written = 120, threading.Event()
    writer = LogWriter.open(str(tmp_path), spec(count), EvalPlan(), format=format)

    def write() -> None:
        for number in range(1, count + 1):
            acknowledged = threading.Event()
            writer.write(sample(number), on_ack=lambda _, seen=acknowledged: seen.set())  # type: ignore[misc]
            if number % 20 == 0:
                acknowledged.wait(30)
        written.set()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    # when it is read all the time
    known = 0
    while not written.is_set():
        found = len(ids(Path(writer.location)))
        assert found >= known
        known = found
    thread.join(30)
    writer.finish("success", None, stats())
    # then it only ever grows
    assert len(ids(Path(writer.location))) == count


def test_a_reader_that_looks_for_the_lock_does_not_take_it_from_a_new_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a reader that tries the lock of a file the moment it is there
    path, tries = tmp_path / "new.eval", 0
    other = os.open(path.with_name("other"), os.O_RDWR | os.O_CREAT)

    def reader(seconds: float) -> None:
        nonlocal tries
        tries += 1
        fcntl.flock(other, fcntl.LOCK_UN)

    real = fcntl.flock

    def flock(handle: int, kind: int) -> None:
        if kind & fcntl.LOCK_EX and tries < 2:
            raise BlockingIOError(errno.EAGAIN, "a reader holds it")
        real(handle, kind)

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(_file_lease.time, "sleep", reader)
    # when it is created, then its writer has the lock in the end
    sink = FileStore().create(str(path))
    os.close(other)
    assert tries == 2 and FileStore().live(str(path))
    sink.close()
    assert not FileStore().live(str(path))

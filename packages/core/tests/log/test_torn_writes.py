"""A commit that is cut at any byte loses nothing that was acknowledged before it."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest
from log_samples import sample, spec, stats

from proctor.contracts import UsageError
from proctor.log import FileStore, LogWriter, read_eval_log, recover_eval_log
from proctor.schema import EvalPlan


class _Recording(FileStore):
    """Keeps what each commit wrote, and where."""

    def __init__(self) -> None:
        self.commits: list[tuple[bytes, bytes]] = []

    def create(self, name: str) -> Any:
        sink = super().create(name)
        write = sink.commit

        def commit(segment: bytes, directory: bytes | bytearray) -> None:
            self.commits.append((bytes(segment), bytes(directory)))
            write(segment, directory)

        sink.commit = commit  # type: ignore[method-assign]  # a spy on the real sink
        return sink


def _states(folder: Path, format: Literal["eval", "json"]) -> list[tuple[bytes, bytes, int]]:
    """The content before a commit, what the commit writes, and the offset, for each commit of a small run."""
    store = _Recording()
    writer = LogWriter.open(str(folder), spec(), EvalPlan(), format=format, store=store)
    for number in range(1, 4):
        writer.write(sample(number))
    writer.finish("success", None, stats())
    states, offset, content = [], 0, b""
    for segment, directory in store.commits:
        states.append((content, segment + directory, offset))
        content = content[:offset] + segment + directory
        offset += len(segment)
    return states


def _ids(path: Path) -> list[int | str]:
    return [one.id for one in read_eval_log(path).samples or []]


def test_every_byte_of_an_eval_commit(tmp_path: Path) -> None:
    # given the states of a log, and each commit cut at every byte
    path = tmp_path / "torn.eval"
    for before, write, offset in _states(tmp_path / "run", "eval")[1:]:
        path.write_bytes(before)
        known = _ids(path)
        for cut in range(len(write)):
            path.write_bytes(before[:offset] + write[:cut] + before[offset + cut :])
            # when the torn log is read, then all that was there before is there
            assert set(known) <= set(_ids(path))


def test_recovering_a_torn_eval_log(tmp_path: Path) -> None:
    path = tmp_path / "torn.eval"
    states = _states(tmp_path / "run", "eval")
    rand = random.Random(7)
    for before, write, offset in states[1:]:
        for cut in rand.sample(range(len(write)), 12):
            path.write_bytes(before[:offset] + write[:cut] + before[offset + cut :])
            known = _ids(path)
            target = tmp_path / "whole.eval"
            with suppress(UsageError):  # nothing to recover: the commit is whole
                target.unlink(missing_ok=True)
                recover_eval_log(path, target)
            if not target.exists():
                assert read_eval_log(path, header_only=True).status == "success"
                continue
            log = read_eval_log(target)
            assert [one.id for one in log.samples or []] == known
            if log.status == "success":  # only the directory behind the header was cut
                assert log.error is None and len(known) == 3
                continue
            assert log.status == "error" and log.error is not None and log.results is not None
            assert log.results.total_samples == len(known)


def test_every_byte_of_a_json_commit(tmp_path: Path) -> None:
    path, target = tmp_path / "torn.json", tmp_path / "whole.json"
    for before, write, offset in _states(tmp_path / "run", "json")[1:]:
        path.write_bytes(before)
        known = _ids(path)
        for cut in range(0, len(write), 97):
            path.write_bytes(before[:offset] + write[:cut] + before[offset + cut :])
            recover_eval_log(path, target, overwrite=True)
            assert set(known) <= set(_ids(target))


@pytest.mark.parametrize("length", [0, 1, 30, 200])
def test_a_log_cut_before_its_beginning_is_complete_is_refused(tmp_path: Path, length: int) -> None:
    path = tmp_path / "cut.eval"
    _, write, _ = _states(tmp_path / "run", "eval")[0]
    path.write_bytes(write[:length])
    with pytest.raises(UsageError, match="not an evaluation log"):
        recover_eval_log(path)


def test_a_log_cut_behind_its_header_is_finished_as_it_is(tmp_path: Path) -> None:
    # given a log whose last commit was cut in its directory
    before, write, offset = _states(tmp_path / "run", "eval")[-1]
    path = tmp_path / "cut.eval"
    path.write_bytes(before[:offset] + write[:-30])
    # when it is recovered, then nothing of it is changed
    log = read_eval_log(recover_eval_log(path))
    assert (log.status, log.error, len(log.samples or [])) == ("success", None, 3)

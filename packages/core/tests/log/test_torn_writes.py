"""A commit that is cut at any byte loses nothing that was acknowledged before it."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest
from log_commits import commits

from proctor.contracts import UsageError
from proctor.log import read_eval_log, recover_eval_log


def _ids(path: Path) -> list[int | str]:
    return [one.id for one in read_eval_log(path).samples or []]


@pytest.mark.slow
def test_every_byte_of_an_eval_commit(tmp_path: Path) -> None:
    # given the states of a log, and each commit cut at every byte
    path = tmp_path / "torn.eval"
    for commit in commits(tmp_path / "run", "eval")[1:]:
        path.write_bytes(commit.before)
        known = _ids(path)
        for cut in range(len(commit.write)):
            path.write_bytes(commit.cut(cut))
            # when the torn log is read, then all that was there before is there
            assert set(known) <= set(_ids(path))


def test_recovering_a_torn_eval_log(tmp_path: Path) -> None:
    path = tmp_path / "torn.eval"
    states = commits(tmp_path / "run", "eval")
    rand = random.Random(7)
    for commit in states[1:]:
        for cut in rand.sample(range(len(commit.write)), 12):
            path.write_bytes(commit.cut(cut))
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
            assert (log.results.completed_samples, log.results.total_samples) == (len(known), 3)


def test_every_byte_of_a_json_commit(tmp_path: Path) -> None:
    path, target = tmp_path / "torn.json", tmp_path / "whole.json"
    for commit in commits(tmp_path / "run", "json")[1:]:
        path.write_bytes(commit.before)
        known = _ids(path)
        for cut in range(0, len(commit.write), 97):
            path.write_bytes(commit.cut(cut))
            recover_eval_log(path, target, overwrite=True)
            assert set(known) <= set(_ids(target))


@pytest.mark.parametrize("length", [0, 1, 30, 200])
def test_a_log_cut_before_its_beginning_is_complete_is_refused(tmp_path: Path, length: int) -> None:
    path = tmp_path / "cut.eval"
    path.write_bytes(commits(tmp_path / "run", "eval")[0].write[:length])
    with pytest.raises(UsageError, match="not an evaluation log"):
        recover_eval_log(path)


def test_a_log_cut_behind_its_header_is_finished_as_it_is(tmp_path: Path) -> None:
    # given a log whose last commit was cut in its directory
    commit = commits(tmp_path / "run", "eval")[-1]
    path = tmp_path / "cut.eval"
    path.write_bytes(commit.after[:-30])
    # when it is recovered, then nothing of it is changed
    log = read_eval_log(recover_eval_log(path))
    assert (log.status, log.error, len(log.samples or [])) == ("success", None, 3)

"""What a resume is told of an earlier log, without its samples being read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from killed_log import killed_log
from log_commits import commits
from log_samples import sample, spec, stats

from proctor.contracts import LogBusyError, UsageError
from proctor.log import LogWriter, index_eval_log, read_eval_log, write_eval_log
from proctor.log._open import open_log
from proctor.log._rewrite import copy_members
from proctor.log._zip_write import ZipBuilder
from proctor.schema import EvalError, EvalPlan, EvalRetryError, EvalSampleLimit, Provenance

Format = Literal["eval", "json"]


def _error(message: str) -> EvalError:
    return EvalError(message=message, traceback="", traceback_ansi="")


def _log(folder: Path, format: Format, *samples: Any, finish: bool = True) -> str:
    writer = LogWriter.open(str(folder), spec(len(samples)), EvalPlan(), format=format)
    for one in samples:
        writer.write(one)
    return writer.finish("error", None, stats()) if finish else writer.location


@pytest.mark.parametrize("format", ["eval", "json"])
def test_the_state_and_the_attempts_of_each_sample(tmp_path: Path, format: Format) -> None:
    # given samples that ended in all the ways there are
    failed, cancelled, limited, tried = sample(2), sample(3), sample(4), sample(5)
    failed.error, cancelled.error = _error("ValueError('no')"), _error("CancelledError()")
    limited.limit = EvalSampleLimit(type="token", limit=5)
    tried.error_retries = [EvalRetryError(**_error("TimeoutError()").model_dump())] * 2
    path = _log(tmp_path, format, sample(1), failed, cancelled, limited, tried)

    # when the log is indexed
    index = index_eval_log(path)

    # then
    states = [index.state(id, 1) for id in (1, 2, 3, 4, 5, 6)]
    assert states == ["done", "error", "cancelled", "done", "done", None]
    assert [index.attempts(id, 1) for id in (1, 2, 5, 6)] == [1, 1, 3, 0]
    assert index.state("1", 1) == "done" and index.state(1, 2) is None
    assert index.counts() == {"done": 3, "error": 1, "cancelled": 1} and len(index) == 5
    assert index.header.status == "error" and index.header.samples is None
    assert [row["id"] for row in index.rows()] == [1, 2, 3, 4, 5]
    assert index.sample(2, 1).error == failed.error


@pytest.mark.parametrize("format", ["eval", "json"])
def test_an_invalidated_sample_is_not_done(tmp_path: Path, format: Format) -> None:
    log = read_eval_log(_log(tmp_path, format, sample(1), sample(2)))
    assert log.samples is not None
    log.invalidated = True
    log.samples[1].invalidation = Provenance(timestamp="2026-01-01T00:00:00Z", author="me")
    write_eval_log(log)
    index = index_eval_log(log.location)
    assert (index.state(1, 1), index.state(2, 1)) == ("done", "invalidated")


@pytest.mark.parametrize("format", ["eval", "json"])
def test_the_log_of_a_killed_run(tmp_path: Path, format: Format) -> None:
    path, acknowledged = killed_log(tmp_path, format, 5)
    index = index_eval_log(path)
    assert index.header.status == "started"
    assert {index.state(id, 1) for id in acknowledged} == {"done"}
    assert len(list(index.rows())) == len(index)


@pytest.mark.parametrize("format", ["eval", "json"])
def test_a_write_that_was_cut_anywhere(tmp_path: Path, format: Format) -> None:
    # given a commit of which only a part was written
    path = tmp_path / f"torn.{format}"
    before: set[int] = set()
    for commit in commits(tmp_path / "run", format)[1:]:
        for cut in range(0, len(commit.write), 41):
            path.write_bytes(commit.cut(cut))
            # when the log is indexed, then what was there before is done, and every sample that is there has its row
            index = index_eval_log(path)
            known = {id for id in (1, 2, 3) if index.state(id, 1) == "done"}
            assert before <= known and len(index) == len(known)
            assert {row["id"] for row in index.rows()} == known
        before = known


def test_ids_of_all_kinds(tmp_path: Path) -> None:
    samples = [sample(1) for _ in range(5)]
    ids = ["ünï", "a/b_epoch_2", "lone \ud83d", "x" * 70_000, "samples/1"]
    for one, id in zip(samples, ids, strict=True):
        one.id = id
    index = index_eval_log(_log(tmp_path, "eval", *samples))
    assert [index.state(id, 1) for id in ids] == ["done"] * 5 and len(index) == 5


def test_a_log_that_is_being_written_or_held_is_refused(tmp_path: Path) -> None:
    writer = LogWriter.open(str(tmp_path), spec(1), EvalPlan())
    with pytest.raises(LogBusyError, match="in use by"):
        index_eval_log(writer.location)
    writer.finish("error", None, stats())
    index = index_eval_log(writer.location, hold=True)
    with pytest.raises(LogBusyError, match="in use by"):
        index_eval_log(writer.location)
    index.hold()
    index.release()
    other = index_eval_log(writer.location)
    other.hold()
    with pytest.raises(LogBusyError):
        index.hold()
    other.release()


def test_a_log_that_was_changed_since_is_not_held(tmp_path: Path) -> None:
    path = _log(tmp_path, "eval", sample(1))
    index = index_eval_log(path)
    log = read_eval_log(path)
    log.status = "success"
    write_eval_log(log)
    with pytest.raises(UsageError, match="has changed since it was read"):
        index.hold()
    index_eval_log(path, hold=True).release()


@pytest.mark.parametrize("rows", [b"[{", b"[3]", b'[{"id": 1}]', b"{}", b'[{"id": 1, "epoch": 1, "retries": "x"}]'])
def test_summaries_that_make_no_sense(tmp_path: Path, rows: bytes) -> None:
    path = _log(tmp_path, "eval", sample(1))
    zip = open_log(path).zip  # type: ignore[attr-defined]  # it is an .eval log
    with pytest.raises(UsageError, match="its summaries make no sense"):
        made, builder = tmp_path / "odd.eval", ZipBuilder()
        parts = list(copy_members(builder, zip, lambda name: name != "summaries.json"))
        parts += builder.add([("summaries.json", rows)])
        made.write_bytes(b"".join([*parts, bytes(builder.directory), builder.end()]))
        index_eval_log(made)


def test_what_is_no_log_says_so(tmp_path: Path) -> None:
    (tmp_path / "alien.eval").write_text("hello")
    with pytest.raises(UsageError, match="not an evaluation log"):
        index_eval_log(tmp_path / "alien.eval")
    with pytest.raises(UsageError, match="there is no log at"):
        index_eval_log(tmp_path / "nothing.eval")


def test_a_torn_log_that_is_held_here_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a log that lacks its end, bytes that are no log, and a folder
    whole = Path(_log(tmp_path, "eval", *(sample(id) for id in range(1, 9)))).read_bytes()
    path = tmp_path / "torn.eval"
    path.write_bytes(whole[:-40])
    (tmp_path / "bytes.eval").write_bytes(b"no log")
    (tmp_path / "folder.eval").mkdir()
    monkeypatch.setattr("proctor.log._steady._wait", lambda seconds: pytest.fail("it waits for itself"))
    # when they are held for a resume, what is torn is not taken for what another process is about to write
    index = index_eval_log(path, hold=True)
    assert len(index) == 8
    index.release()
    with pytest.raises(UsageError, match=r"neither a ZIP archive nor a JSON object \(its first"):
        index_eval_log(tmp_path / "bytes.eval", hold=True)
    with pytest.raises(UsageError, match="is a folder"):
        index_eval_log(tmp_path / "folder.eval", hold=True)

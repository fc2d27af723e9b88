"""The writer: what it acknowledges is in the log, and what it cannot write it says."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import pytest
from log_samples import sample, spec, stats

from proctor.contracts import Stat, UsageError
from proctor.log import (
    FileStore,
    LogWriter,
    Patience,
    _file_store,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
    read_eval_log_samples,
    write_eval_log,
)
from proctor.log._zip_read import ZipReader
from proctor.schema import (
    ChatMessageUser,
    ContentImage,
    EvalConfig,
    EvalError,
    EvalLog,
    EvalMetric,
    EvalPlan,
    EvalPlanStep,
    EvalResults,
    EvalSampleScore,
    EvalScore,
)

FORMATS = ["eval", "json"]
RESULTS = EvalResults(
    total_samples=3,
    completed_samples=3,
    scores=[EvalScore(name="match", scorer="match", metrics={"accuracy": EvalMetric(name="accuracy", value=1.0)})],
)


def members(path: str) -> ZipReader:
    data = Path(path).read_bytes()
    return ZipReader(lambda start, end: data[start:end], len(data))


@pytest.mark.parametrize("format", FORMATS)
def test_a_run_from_beginning_to_end(tmp_path: Path, format: Literal["eval", "json"]) -> None:
    # given a run of three samples, the last of them twice
    plan = EvalPlan(steps=[EvalPlanStep(solver="generate")])
    writer = LogWriter.open(str(tmp_path / "new" / "folder"), spec(), plan, format=format)
    written = [sample(number) for number in (3, 1, 2)]
    acknowledged: list[Any] = []
    for one in written:
        writer.write(one, on_ack=acknowledged.append)
        writer.reduction("match", "mean", EvalSampleScore(value=1.0, sample_id=one.id))
    # when it is finished
    assert writer.finish("success", RESULTS, stats()) == writer.location
    # then everything is in the log, and was acknowledged in order
    log = read_eval_log(writer.location)
    assert (log.status, log.plan.steps, log.results) == ("success", plan.steps, RESULTS)
    assert [one.id for one in log.samples or []] == [1, 2, 3]
    assert [row["uuid"] for row in acknowledged] == [one.uuid for one in written]
    assert [row.uuid for row in read_eval_log_sample_summaries(writer.location)][-3:] in (
        [one.uuid for one in written],
        [one.uuid for one in sorted(written, key=lambda one: one.id)],
    )
    assert log.reductions is not None and [score.sample_id for score in log.reductions[0].samples] == [3, 1, 2]
    assert [one.id for one in read_eval_log_samples(writer.location)] == [1, 2, 3]
    assert read_eval_log_sample(writer.location, uuid=written[0].uuid).id == 3


def test_members_stand_in_the_order_of_the_format(tmp_path: Path) -> None:
    writer = LogWriter.open(str(tmp_path), spec(), EvalPlan())
    writer.write(sample(1))
    writer.finish("success", RESULTS, stats())
    names = [entry.name for entry in members(writer.location).records]
    assert names == [
        "_journal/start.json",
        "samples/1_epoch_1.json",
        "_journal/summaries/1.json",
        "summaries.json",
        "reductions.json",
        "header.json",
    ]
    assert members(writer.location).read("reductions.json") == b"[]"


@pytest.mark.parametrize("format", FORMATS)
def test_a_running_log_can_be_read(tmp_path: Path, format: Literal["eval", "json"]) -> None:
    # given a run that goes on
    writer = LogWriter.open(str(tmp_path), spec(), EvalPlan(), format=format)
    done = threading.Event()
    writer.write(sample(1), on_ack=lambda _: done.set())
    # when its first sample is acknowledged
    assert done.wait(30)
    # then it is there for readers
    log = read_eval_log(writer.location)
    assert log.status == "started" and [one.id for one in log.samples or []] == [1]
    assert FileStore().live(writer.location)
    writer.finish("cancelled", None, stats())
    assert not FileStore().live(writer.location)


def test_the_last_attempt_at_a_sample_counts(tmp_path: Path) -> None:
    writer = LogWriter.open(str(tmp_path), spec(1), EvalPlan())
    first, second = sample(1), sample(1)
    writer.write(first)
    writer.write(second)
    writer.finish("success", None, stats())
    assert [one.uuid for one in read_eval_log(writer.location).samples or []] == [second.uuid]
    assert [row.uuid for row in read_eval_log_sample_summaries(writer.location)] == [second.uuid]


def test_logs_of_one_second_have_names_of_their_own(tmp_path: Path) -> None:
    same = spec()
    writers = [LogWriter.open(str(tmp_path), same, EvalPlan()) for _ in range(20)]
    assert len({writer.location for writer in writers}) == 20
    for writer in writers:
        writer.finish("success", None, stats())


def test_without_samples_there_are_only_results(tmp_path: Path) -> None:
    quiet = spec(config=EvalConfig(epochs=1, log_samples=False))
    writer = LogWriter.open(str(tmp_path), quiet, EvalPlan())
    acknowledged: list[Any] = []
    writer.write(sample(1), on_ack=acknowledged.append)
    writer.finish("success", RESULTS, stats())
    assert members(writer.location).read("summaries.json") == b"[]"
    assert read_eval_log(writer.location).samples == [] and len(acknowledged) == 1


def test_images_can_be_left_out(tmp_path: Path) -> None:
    picture = "data:image/png;base64," + "A" * 500
    message = ChatMessageUser(content=[ContentImage(image=picture)])
    writer = LogWriter.open(str(tmp_path), spec(config=EvalConfig(log_images=False)), EvalPlan())
    writer.write(sample(1, input=[message], messages=[message]))
    writer.finish("success", None, stats())
    assert b"AAAA" not in members(writer.location).read("samples/1_epoch_1.json")


def test_a_sample_that_cannot_be_encoded_costs_no_other(tmp_path: Path) -> None:
    broken = sample(2).model_copy(update={"events": [object()]})
    writer = LogWriter.open(str(tmp_path), spec(), EvalPlan())
    for one in (sample(1), broken, sample(3)):
        writer.write(one)
    writer.finish("success", None, stats())
    first, second, third = read_eval_log(writer.location).samples or []
    assert first.error is None and third.error is None
    assert second.error is not None and "could not be written" in second.error.message


def test_who_is_told_of_a_sample_cannot_stop_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    writer = LogWriter.open(str(tmp_path), spec(), EvalPlan())
    writer.write(sample(1), on_ack=lambda _: 1 / 0)
    writer.write(sample(2))
    writer.finish("success", None, stats())
    assert len(read_eval_log(writer.location).samples or []) == 2
    assert "ZeroDivisionError" in caplog.text


def test_what_is_known_only_at_the_end(tmp_path: Path) -> None:
    unknown = spec()
    unknown.dataset.sample_ids = None
    writer = LogWriter.open(str(tmp_path), unknown, EvalPlan())
    failure = EvalError(message="m", traceback="t", traceback_ansi="a")
    writer.finish("error", None, stats(), error=failure, sample_ids=[7, "x"], metadata={"proctor": {"unit": "u"}})
    log = read_eval_log(writer.location, header_only=True)
    assert log.eval.dataset.sample_ids == [7, "x"] and log.metadata == {"proctor": {"unit": "u"}}
    assert log.error == failure


def test_ids_that_nobody_knew_are_listed_at_the_end(tmp_path: Path) -> None:
    unknown = spec()
    unknown.dataset.sample_ids = None
    writer = LogWriter.open(str(tmp_path), unknown, EvalPlan())
    for one in (sample(10), sample(2), sample(2, epoch=2)):
        writer.write(one)
    writer.finish("success", None, stats())
    assert read_eval_log(writer.location, header_only=True).eval.dataset.sample_ids == [2, 10]
    assert [one.id for one in read_eval_log_samples(writer.location)] == [2, 10]


class _Full(FileStore):
    """A disk without space for some commits: each leaves most of what it was given."""

    def __init__(self, failures: int, code: int = errno.ENOSPC) -> None:
        self.failures = failures
        self.code = code
        self.path = ""

    def create(self, name: str) -> Any:
        self.path = name
        sink = super().create(name)
        write = sink.commit

        def full(handle: int, segment: bytes, directory: bytes | bytearray, offset: int) -> None:
            os.pwrite(handle, (segment + directory)[:-7], offset)
            raise OSError(self.code, "no space left on device")

        def commit(segment: bytes, directory: bytes | bytearray) -> None:
            with pytest.MonkeyPatch.context() as patch:
                if segment and self.failures > 0 and Path(name).stat().st_size > 0:
                    self.failures -= 1
                    patch.setattr(_file_store, "_write", full)
                write(segment, directory)

        sink.commit = commit  # type: ignore[method-assign]
        return sink


@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: Literal["eval", "json"]
) -> None:
    # given a disk that is full three times
    store = _Full(3)
    found: list[Any] = []
    holder: list[LogWriter] = []

    def look(_seconds: float) -> None:
        # while the writer waits, the log is as it was before, and it says why
        assert Path(store.path).read_bytes() == before
        found.append(([one.id for one in read_eval_log(store.path).samples or []], holder[0].stalled))

    monkeypatch.setattr(time, "sleep", look)
    # when a sample is written
    writer = LogWriter.open(str(tmp_path), spec(), EvalPlan(), format=format, store=store)
    before = Path(store.path).read_bytes()
    holder.append(writer)
    writer.write(sample(1))
    writer.finish("success", None, stats())
    # then it is in the log in the end
    assert [one.id for one in read_eval_log(writer.location).samples or []] == [1]
    assert len(found) == 3 and all(ids == [] and "no space" in why for ids, why in found)
    assert writer.stalled is None


def test_a_disk_that_is_full_at_the_very_end_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a disk that has no room to write a .json log anew, as its end asks for
    class Full(FileStore):
        def replace(self, name: str, chunks: Iterable[bytes], if_match: str | None = None) -> Stat:
            written = b"".join(chunks)
            if len(waits) < 2:
                raise OSError(errno.EDQUOT, "quota exceeded")
            return super().replace(name, [written], if_match)

    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    writer = LogWriter.open(str(tmp_path), spec(1), EvalPlan(), format="json", store=Full())
    writer.write(sample(1))
    # when it ends, then it waits for room, and nothing is missing
    writer.finish("success", None, stats())
    assert len(waits) == 2
    log = read_eval_log(writer.location)
    assert (log.status, len(log.samples or [])) == ("success", 1)


def test_who_is_in_a_hurry_does_not_wait_for_space(tmp_path: Path) -> None:
    # given a log whose disk stays full
    patience = Patience()
    writer = LogWriter.open(str(tmp_path), spec(1), EvalPlan(), store=_Full(1_000_000), patience=patience)
    acknowledged: list[Any] = []
    writer.write(sample(1), on_ack=acknowledged.append)
    # when it is to end at once, then it does, and says what could not be written
    patience.hurry()
    with pytest.raises(OSError, match="no space"):
        writer.finish("cancelled", None, stats())
    assert not acknowledged and patience.stalled is None
    assert read_eval_log(writer.location).status == "started"


def test_a_log_that_cannot_be_begun_leaves_nothing(tmp_path: Path) -> None:
    class Broken(FileStore):
        def create(self, name: str) -> Any:
            sink = super().create(name)

            def commit(segment: bytes, directory: bytes | bytearray) -> None:
                raise OSError(errno.EIO, "broken")

            sink.commit = commit  # type: ignore[method-assign]
            return sink

    with pytest.raises(OSError, match="broken"):
        LogWriter.open(str(tmp_path), spec(), EvalPlan(), store=Broken())
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fails_ends_the_log_with_its_error(tmp_path: Path) -> None:
    writer = LogWriter.open(str(tmp_path), spec(), EvalPlan(), store=_Full(1, errno.EIO))
    acknowledged: list[Any] = []
    writer.write(sample(1), on_ack=acknowledged.append)
    with pytest.raises(OSError, match="no space"):
        writer.finish("success", None, stats())
    assert isinstance(writer.error, OSError) and not acknowledged
    assert read_eval_log(writer.location).status == "started"


def test_a_new_file_has_the_mode_that_the_process_asks_for_and_a_replaced_one_keeps_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a process whose files others may write
    mask = os.umask(0o007)
    try:
        # when a log is written, then its mask is nobody's business for a moment: other threads make files, too
        monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the mask is the whole process's"))
        path = tmp_path / ("ü" * 110 + ".eval")
        log = EvalLog(eval=spec(), samples=[sample(1)])
        write_eval_log(log, path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        path.chmod(0o604)
        write_eval_log(log, path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
        assert list(tmp_path.iterdir()) == [path]
    finally:
        monkeypatch.undo()
        os.umask(mask)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--log-dir"):
        LogWriter.open(str(tmp_path / "file" / "logs"), spec(), EvalPlan())


def test_an_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="xml"):
        LogWriter.open(str(tmp_path), spec(), EvalPlan(), format="xml")  # type: ignore[arg-type]


def test_logs_in_memory() -> None:
    writer = LogWriter.open("memory://runs", spec(), EvalPlan())
    assert writer.location.startswith("memory://runs/")
    writer.write(sample(1))
    writer.finish("success", None, stats())
    assert [one.id for one in read_eval_log(writer.location).samples or []] == [1]


def test_the_name_says_when_what_and_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = spec(created="2026-11-29T11:19:30+00:00", task="pack/a_b:c", task_id="ID")
    names = []
    for pattern in ("{task}_{id}", "{task}_{model}_{id}"):
        monkeypatch.setenv("PROCTOR_LOG_FILE_PATTERN", pattern)
        writer = LogWriter.open(str(tmp_path), one, EvalPlan())
        writer.finish("success", None, stats())
        names.append(Path(writer.location).name)
    assert names == [
        "2026-11-29T11-19-30-00-00_a-b-c_ID.eval",
        "2026-11-29T11-19-30-00-00_a-b-c_openai-gpt-4o-mini_ID.eval",
    ]
    monkeypatch.setenv("PROCTOR_LOG_FILE_PATTERN", "{nothing}")
    with pytest.raises(UsageError, match="PROCTOR_LOG_FILE_PATTERN"):
        LogWriter.open(str(tmp_path), one, EvalPlan())


def test_very_long_task_names_fit_a_file_system(tmp_path: Path) -> None:
    writer = LogWriter.open(str(tmp_path), spec(task="ü" * 400, task_id="ID"), EvalPlan())
    writer.finish("success", None, stats())
    assert writer.location.endswith("_ID.eval")


def test_surrogates_nan_and_huge_numbers_survive(tmp_path: Path) -> None:
    odd = {
        "lone": "\ud83d",
        "nul": "\x00",
        "nan": float("nan"),
        "big": 2**70,
        "ünï": float("-inf"),
        "deep": {"\ud83d": None},
    }
    writer = LogWriter.open(str(tmp_path), spec(), EvalPlan())
    written = sample("id \ud83d", question="why \ud83d?", metadata=odd)
    writer.write(written)
    writer.finish("success", None, stats())
    (read,) = read_eval_log(writer.location, resolve_attachments=True).samples or []
    assert (read.id, read.input) == (written.id, written.input)
    assert json.dumps(read.metadata, sort_keys=True) == json.dumps(odd, sort_keys=True)
    assert read_eval_log_sample(writer.location, "id \ud83d").uuid == written.uuid
    assert read_eval_log_sample_summaries(writer.location)[0].input == "why \ud83d?"


def test_what_waits_is_measured_by_the_samples_before_it(tmp_path: Path) -> None:
    """A slow disk: the writer is inside a commit, and samples queue up behind it."""
    entered, release = threading.Event(), threading.Event()

    class SlowStore(FileStore):
        def create(self, name: str) -> Any:
            sink = super().create(name)
            commit = sink.commit
            calls: list[int] = []

            def slow(segment: bytes, directory: Any) -> None:
                calls.append(1)
                if len(calls) == 2:  # the first is the beginning of the log
                    entered.set()
                    release.wait(60)
                commit(segment, directory)

            sink.commit = slow  # type: ignore[method-assign]
            return sink

    writer = LogWriter.open(str(tmp_path), spec(), EvalPlan(), store=SlowStore())
    try:
        assert writer.backlog_bytes == 0
        writer.write(sample(1, question="x" * 100_000))
        assert entered.wait(60)
        assert writer.backlog_bytes == 0
        for number in (2, 3):
            writer.write(sample(number))
        assert writer.backlog == 2
        assert writer.backlog_bytes > 200_000
    finally:
        release.set()
        writer.finish("success", None, stats())
    assert writer.backlog_bytes == 0

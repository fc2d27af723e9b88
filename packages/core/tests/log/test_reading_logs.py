"""Reading: the peer's sample logs of every kind, what newer versions add, and what is no log at all."""

from __future__ import annotations

import io
import json
import math
import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from log_samples import sample, spec, stats

from proctor.contracts import Stat, UsageError
from proctor.log import (
    FileStore,
    LogWriter,
    MemoryStore,
    SampleNotFoundError,
    convert_eval_logs,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
    read_eval_log_samples,
    recover_eval_log,
    write_eval_log,
)
from proctor.log._json_file import JsonFile
from proctor.log._open import open_log
from proctor.log._zip_read import ZipReader
from proctor.schema import EvalLog, EvalPlan, ModelEvent, UnknownEvent

LOGS = Path(__file__).parents[4] / "tests" / "data" / "eval-logs"
FILES = sorted(path.name for path in LOGS.iterdir() if path.suffix in (".eval", ".json"))
CHUNKED = "chunked_samples.eval"
HEADER = {"eval": {"created": "2026-01-01", "task": "t", "dataset": {}, "model": "a/b", "config": {}}}


def archive(path: Path, **members: Any) -> Path:
    with zipfile.ZipFile(path, "w") as target:
        for name, value in members.items():
            text = value if isinstance(value, str) else json.dumps(value)
            target.writestr(name.replace("__", "/") + ".json", text)
    return path


@pytest.mark.parametrize("name", FILES)
def test_every_sample_log_is_read(name: str) -> None:
    header = read_eval_log(LOGS / name, header_only=True)
    assert header.samples is None and header.location == str(LOGS / name)
    log = read_eval_log(LOGS / name)
    assert log.samples is not None and log.status == header.status and log.eval == header.eval
    rows = read_eval_log_sample_summaries(LOGS / name)
    if name != CHUNKED:  # its samples are in parts
        keys = [(str(one.id), one.epoch) for one in log.samples]
        assert sorted((str(row.id), row.epoch) for row in rows) == sorted(keys)
        for one in log.samples[:2]:
            assert read_eval_log_sample(LOGS / name, one.id, one.epoch).uuid == one.uuid
            assert read_eval_log_sample(LOGS / name, uuid=one.uuid).id == one.id
        assert all(
            event.input_refs is None for one in log.samples for event in one.events if isinstance(event, ModelEvent)
        )


def test_what_the_index_says_of_some_logs() -> None:
    assert read_eval_log(LOGS / "killed_sigkill.eval").status == "started"
    assert len(read_eval_log(LOGS / "killed_sigkill.eval").samples or []) == 6
    update = read_eval_log(LOGS / "config_update_midrun.eval", header_only=True).config_updates
    assert update is not None and update[0].changes[0]["name"] == "max_samples"
    scores = [one.scores for one in read_eval_log(LOGS / "nan_scores.eval").samples or []]
    assert any(score.value != score.value for some in scores for score in (some or {}).values())
    edited = read_eval_log(LOGS / "edited_scores_tags_metadata.eval", header_only=True)
    assert edited.tags and edited.tags != (edited.eval.tags or [])
    assert math.isnan(read_eval_log(LOGS / "nan_all.eval").results.scores[0].metrics["mean"].value)  # type: ignore[union-attr]


def test_chunked_samples_are_named_when_asked_for() -> None:
    with pytest.raises(UsageError, match="chunks"):
        read_eval_log_sample(LOGS / CHUNKED, read_eval_log_sample_summaries(LOGS / CHUNKED)[0].id)


@pytest.mark.parametrize(
    "name", ["multi_scorer.eval", "killed_sigkill.eval", "rezipped_deflate.eval", "nan_scores.eval"]
)
def test_pages_of_summaries(name: str) -> None:
    rows = read_eval_log_sample_summaries(LOGS / name)
    for offset, limit in ((0, 2), (1, 3), (2, 100), (100, 1), (0, 0)):
        page = read_eval_log_sample_summaries(LOGS / name, offset=offset, limit=limit)
        assert [row.uuid for row in page] == [row.uuid for row in rows[offset : offset + limit]]


def test_members_are_found_without_reading_all_entries(tmp_path: Path) -> None:
    # given names that end or begin like others, and one that stands twice
    names = ["header", "x__header", "samples__1_epoch_1", "samples__11_epoch_1", "samples__1_epoch_11"]
    path = archive(tmp_path / "a.eval", **{name: {"name": name} for name in names})
    with zipfile.ZipFile(path, "a") as target, pytest.warns(UserWarning, match="Duplicate"):
        target.writestr("samples/1_epoch_1.json", '{"name":"again"}')
    data = path.read_bytes()
    # when each is looked for, then the right one is found, and others are not
    for name in names:
        reader = ZipReader(lambda start, end: data[start:end], len(data))
        expected = "again" if name == "samples__1_epoch_1" else name
        assert json.loads(reader.read(name.replace("__", "/") + ".json"))["name"] == expected
        assert "entries" not in vars(reader)
        assert "eader.json" not in reader and "samples/1" not in reader


def test_the_smallest_log(tmp_path: Path) -> None:
    one = {"id": 1, "epoch": 1, "input": "q", "target": "a"}
    path = archive(tmp_path / "a.eval", header=HEADER, samples__1_epoch_1=one)
    log = read_eval_log(path)
    assert log.samples is not None and log.samples[0].input == "q" and log.eval.eval_id
    assert read_eval_log_sample_summaries(path) == []


def test_what_a_newer_version_adds_is_kept(tmp_path: Path) -> None:
    # given a log with fields, events, roles and content that we do not know
    new = {"new": {"deep": [1, None]}}
    message = {"role": "narrator", "content": [{"type": "hologram", "data": 3}], **new}
    events = [{"event": "dream", "uuid": "u", "depth": 3, **new}, {"event": "info", "data": 1, **new}]
    one = {"id": 1, "epoch": 1, "input": "q", "target": "a", "messages": [message], "events": events, **new}
    header = {**HEADER, "eval": {**HEADER["eval"], **new}, **new}
    path = archive(tmp_path / "a.eval", header=header, samples__1_epoch_1=one)
    # when it is read and written
    log = read_eval_log(path)
    for target in (tmp_path / "b.eval", tmp_path / "c.json"):
        write_eval_log(log, target)
        again = read_eval_log(target)
        # then all of it is there
        (read,) = again.samples or []
        assert isinstance(read.events[0], UnknownEvent)
        dumped = json.loads(again.model_dump_json(exclude_none=True))
        assert dumped["new"] == dumped["eval"]["new"] == dumped["samples"][0]["new"] == new["new"]
        assert dumped["samples"][0]["events"] == events and dumped["samples"][0]["messages"] == [message]


def test_only_the_new_header_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    path.write_bytes((LOGS / "tool_calls.eval").read_bytes())
    samples = read_eval_log(path).samples
    header = read_eval_log(path, header_only=True)
    header.eval.tags = ["seen"]
    before = header.etag
    write_eval_log(header, if_match=before)
    again = read_eval_log(path)
    assert again.tags == ["seen"] and again.samples == samples
    with pytest.raises(FileExistsError, match="somebody else"):
        write_eval_log(header, if_match=before)


@pytest.mark.parametrize("format", ["eval", "json"])
def test_metadata_of_a_json_log_changes_without_its_samples(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"a.{format}"
    write_eval_log(read_eval_log(LOGS / "simple_success.eval"), path)
    header = read_eval_log(path, header_only=True)
    header.eval.metadata = {"note": 1}
    write_eval_log(header)
    assert read_eval_log(path).metadata == {"note": 1} and len(read_eval_log(path).samples or []) == 3


JUNK = {
    "empty": (b"", "empty"),
    "text": (b"hello", "neither"),
    "list": (b"[1]", "neither"),
    "object": (b'{"a": 1}', "eval"),
    "cut": (b'{"version": 2, "eval', "too early|not whole"),
    "newer": (b'{"version": 3, "status": "success"}', "version 3"),
    "zip": (b"PK\x05\x06" + bytes(18), "neither header.json"),
    "end": (b"PK\x03\x04 and nothing else", "neither header.json"),
}


@pytest.mark.parametrize("kind", JUNK)
def test_what_is_no_log_is_refused_with_the_reason(tmp_path: Path, kind: str) -> None:
    data, reason = JUNK[kind]
    path = tmp_path / "x.eval"
    path.write_bytes(data)
    for read in (read_eval_log, lambda path: read_eval_log(path, header_only=True)):
        with pytest.raises(UsageError, match=reason) as caught:
            read(path)
        assert str(path) in str(caught.value)


def test_a_header_that_does_not_fit_says_where(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.eval", header={"eval": {**HEADER["eval"], "task": 7}})
    with pytest.raises(UsageError, match=r"eval\.task"):
        read_eval_log(path)


def test_folders_and_absent_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="folder"):
        read_eval_log(tmp_path)
    with pytest.raises(FileNotFoundError, match="log list"):
        read_eval_log(tmp_path / "absent.eval")


def test_samples_that_are_not_there() -> None:
    with pytest.raises(SampleNotFoundError, match="'absent'"):
        read_eval_log_sample(LOGS / "simple_success.eval", "absent")
    with pytest.raises(IndexError):
        read_eval_log_sample(LOGS / "simple_success.eval", uuid="absent")
    with pytest.raises(UsageError, match="uuid"):
        read_eval_log_sample(LOGS / "simple_success.eval")


def test_incomplete_logs_are_not_read_as_complete() -> None:
    with pytest.raises(UsageError, match="started"):
        read_eval_log_samples(LOGS / "killed_sigkill.eval")
    with pytest.raises(UsageError, match="invalidated"):
        read_eval_log_samples(LOGS / "invalidated_sample.eval")
    assert len(list(read_eval_log_samples(LOGS / "killed_sigkill.eval", all_samples_required=False))) == 6


@pytest.mark.slow
def test_only_what_is_needed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given logs with one large sample
    read: list[int] = []
    real = FileStore.read

    def counted(self: FileStore, name: str, start: int = 0, end: int | None = None) -> bytes:
        data = real(self, name, start, end)
        read.append(len(data))
        return data

    log = EvalLog(status="success", eval=spec(2), samples=[sample(1), sample(2, metadata={"noise": _noise(3_000_000)})])
    for format in ("eval", "json"):
        write_eval_log(log, tmp_path / f"a.{format}")
    monkeypatch.setattr(FileStore, "read", counted)
    # when a header or the other sample is read, then the large one is not
    read_eval_log(tmp_path / "a.eval", header_only=True)
    read_eval_log(tmp_path / "a.json", header_only=True)
    read_eval_log_sample(tmp_path / "a.eval", 1)
    read_eval_log_sample_summaries(tmp_path / "a.eval")
    assert sum(read) < 500_000


def _noise(length: int) -> str:
    import random

    rand = random.Random(1)
    return "".join(rand.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(length))


def test_a_listing_goes_by_names(tmp_path: Path) -> None:
    names = [
        "2026-11-29T11-19-30-00-00_my-task_ID1.eval",
        "2026-11-29T11-19-30-00-00_my-task_ID2-recovered.json",
        "2026-11-29T11-19-30-00-00_my-task_openai-gpt_ID3.eval",
        "sub/odd.eval",
        "logs.json",
        "eval-set.json",
        "2026-11-29T11-19-30-00-00_notes.txt",
    ]
    (tmp_path / "sub").mkdir()
    for name in names:
        (tmp_path / name).write_bytes(b"anything")
    found = {Path(info.name).name: (info.task, info.task_id, info.suffix) for info in list_eval_logs(str(tmp_path))}
    assert found == {
        "2026-11-29T11-19-30-00-00_my-task_ID1.eval": ("my-task", "ID1", None),
        "2026-11-29T11-19-30-00-00_my-task_ID2-recovered.json": ("my-task", "ID2", "recovered"),
        "2026-11-29T11-19-30-00-00_my-task_openai-gpt_ID3.eval": ("my-task", "ID3", None),
        "odd.eval": ("", "", None),
    }
    assert len(list_eval_logs(str(tmp_path), recursive=False)) == 3
    assert len(list_eval_logs(str(tmp_path), formats=("json",))) == 1
    assert list_eval_logs(str(tmp_path / "absent")) == []


def test_a_listing_of_an_url_gives_locations_that_can_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "my logs"
    folder.mkdir()
    shutil.copy(LOGS / FILES[0], folder)

    [plain], [quoted] = list_eval_logs(folder.as_uri().replace("%20", " ")), list_eval_logs(folder.as_uri())

    read = [read_eval_log(found.name, header_only=True).eval for found in (plain, quoted)]
    assert read[0] == read[1]


def test_a_json_log_is_read_once_for_all_its_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    path = next(str(LOGS / name) for name in FILES if name.endswith(".json"))
    reads: list[bool] = []
    whole = JsonFile.whole
    monkeypatch.setattr(JsonFile, "whole", lambda self, resolve=False: reads.append(resolve) or whole(self, resolve))
    file = open_log(path)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda key: file.sample(*key), file.keys() * 2))

    assert len(reads) == 1


def test_a_listing_asks_headers_when_names_say_nothing() -> None:
    found = {
        Path(info.name).name: info.task
        for info in list_eval_logs(str(LOGS), filter=lambda log: log.status == "started")
    }
    assert found == {"in_progress_snapshot.eval": "slow", "killed_sigkill.eval": "slow"} or set(found) == {
        "in_progress_snapshot.eval",
        "killed_sigkill.eval",
    }
    assert len(list_eval_logs(str(LOGS / "dir_eval_set"))) == 4


def test_recovering_a_killed_log(tmp_path: Path) -> None:
    for name in ("killed_sigkill.eval", "killed_sigkill_json.json"):
        target = recover_eval_log(LOGS / name, tmp_path / name)
        log = read_eval_log(target)
        assert (log.status, len(log.samples or [])) == ("error", 6)
        assert log.results is not None and log.results.completed_samples == 6
        assert log.stats.model_usage["openai/gpt-4o-mini"].total_tokens == 180
        with pytest.raises(UsageError, match="already"):
            recover_eval_log(LOGS / name, tmp_path / name)


def test_a_log_that_is_whole_or_alive_is_not_recovered(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to recover"):
        recover_eval_log(LOGS / "simple_success.eval")
    with pytest.raises(UsageError, match="no log"):
        recover_eval_log(tmp_path / "absent.eval")
    writer = LogWriter.open(str(tmp_path), spec(), EvalPlan())
    with pytest.raises(UsageError, match="alive"):
        recover_eval_log(writer.location)
    writer.finish("success", None, stats())


def test_converting_refuses_to_overwrite(tmp_path: Path) -> None:
    source = LOGS / "simple_success.eval"
    (made,) = convert_eval_logs(source, "json", tmp_path)
    assert read_eval_log(made).samples == read_eval_log(source).samples
    with pytest.raises(UsageError, match="--overwrite"):
        convert_eval_logs(source, "json", tmp_path)
    assert convert_eval_logs(source, "json", tmp_path, overwrite=True) == [made]
    with pytest.raises(UsageError, match="no log"):
        convert_eval_logs(tmp_path / "nothing", "eval", tmp_path)


@pytest.mark.parametrize("store", [FileStore(), MemoryStore()], ids=["file", "memory"])
def test_what_every_store_does(tmp_path: Path, store: Any) -> None:
    name = f"{tmp_path}/folder/a.eval"
    sink = store.create(name)
    with pytest.raises(FileExistsError):
        store.create(name)
    assert store.live(name)
    sink.commit(b"one", b"DIRECTORY")
    sink.commit(b"two", bytearray(b"DIR"))
    assert store.read(name) == b"onetwoDIR" and store.read(name, 2, 5) == b"etw" and store.read(name, 7, 99) == b"IR"
    sink.close()
    sink.close()
    assert not store.live(name)
    before = store.stat(name)
    assert isinstance(before, Stat) and before.size == 9 and before.mtime > 1e9
    assert [found for found, _ in store.list(str(tmp_path))] == [name]
    assert list(store.list(str(tmp_path), recursive=False)) == []
    after = store.replace(name, iter([b"ne", b"w"]), if_match=before.etag)
    assert store.read(name) == b"new" and after.etag == store.stat(name).etag != before.etag
    with pytest.raises(FileExistsError):
        store.replace(name, [b"newer"], if_match=before.etag)
    assert store.read(name) == b"new"
    store.delete(name)
    for missing in (store.read, store.stat, store.delete):
        with pytest.raises(FileNotFoundError):
            missing(name)


def test_deflated_and_stored_members_become_zstandard_on_rewriting(tmp_path: Path) -> None:
    log = read_eval_log(LOGS / "rezipped_deflate.eval")
    write_eval_log(log, tmp_path / "a.eval")
    with zipfile.ZipFile(io.BytesIO((tmp_path / "a.eval").read_bytes())) as found:
        assert {info.compress_type for info in found.infolist()} == {93}

"""Edits of finished logs: samples stay as they are, and of two editors none undoes what the other did."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from child_processes import running
from log_samples import sample, spec, stats

from proctor.contracts import LogBusyError, UsageError
from proctor.log import (
    EvalPlan,
    EvalResults,
    LogEdit,
    LogFile,
    LogWriter,
    MetadataEdit,
    Provenance,
    TagsEdit,
    change_eval_log,
    edit_eval_log,
    hold_eval_log,
    new_provenance,
    read_eval_log,
    read_eval_log_sample_summaries,
    store_for,
    write_eval_log,
)
from proctor.log._eval_file import EvalFile
from proctor.log._open import open_log

EDITORS, EDITS = 4, 5
_DEADLINE = 60

EDITOR = """
import sys
from proctor.log import TagsEdit, edit_eval_log
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
for number in range(count):
    edit_eval_log(path, [TagsEdit(tags_add=[f"{name}-{number}"])])
"""


def finished(folder: str, format: Any = "eval", samples: int = 3) -> str:
    """A finished log of some samples."""
    writer = LogWriter.open(folder, spec(samples, tags=["first"], metadata={"a": 1}), EvalPlan(), format=format)
    for id in range(1, samples + 1):
        writer.write(sample(id))
    return writer.finish("success", EvalResults(total_samples=samples, completed_samples=samples), stats())


@pytest.fixture(params=["eval", "json"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return finished(str(tmp_path), request.param)


def test_tags_and_metadata_change_and_the_log_says_who_did_it(log: str) -> None:
    # when somebody changes tags and metadata twice
    who = Provenance(author="ann", timestamp="2026-11-29T12:00:00Z", reason="looked at it")
    edit_eval_log(log, [TagsEdit(tags_add=["good"], tags_remove=["first"]), MetadataEdit(metadata_set={"b": [2]})], who)
    made = edit_eval_log(log, [MetadataEdit(metadata_set={"b": 3}, metadata_remove=["a"])], new_provenance("bob"))
    # then all of it is in the log, and what the run said, too
    read = read_eval_log(log)
    assert (read.tags, read.metadata) == (made.tags, made.metadata) == (["good"], {"b": 3})
    assert (read.eval.tags, read.eval.metadata) == (["first"], {"a": 1})
    assert read.log_updates is not None
    assert [(update.provenance.author, update.provenance.reason) for update in read.log_updates] == [
        ("ann", "looked at it"),
        ("bob", None),
    ]
    assert len(read.samples or ()) == 3
    assert made.etag == read.etag


def test_an_edit_of_the_header_copies_the_samples_byte_for_byte(tmp_path: Path) -> None:
    log = finished(str(tmp_path))

    def stored() -> dict[str, bytes]:
        file = open_log(log)
        assert isinstance(file, EvalFile)
        return {name: file.zip.raw(entry) for name, entry in file.zip.entries.items() if name != "header.json"}

    before = stored()
    edit_eval_log(log, [TagsEdit(tags_add=["good"])])
    assert stored() == before


def test_what_is_not_there_can_not_be_removed(log: str) -> None:
    before = Path(log).read_bytes()
    with pytest.raises(UsageError, match=r"no tag 'bad'; it has: first"):
        edit_eval_log(log, [TagsEdit(tags_remove=["bad"])])
    with pytest.raises(UsageError, match=r"no metadata key 'z'"):
        edit_eval_log(log, [MetadataEdit(metadata_remove=["z"])])
    assert Path(log).read_bytes() == before


@pytest.mark.slow
def test_two_editors_of_a_file_lose_nothing(log: str) -> None:
    # when several processes change a log at the same time
    with ThreadPoolExecutor(EDITORS) as pool:
        codes = list(pool.map(lambda name: _edited(log, name), range(EDITORS)))
    # then every change is in it
    assert codes == [0] * EDITORS
    read = read_eval_log(log)
    wanted = {f"{name}-{number}" for name in range(EDITORS) for number in range(EDITS)}
    assert set(read.tags) == wanted | {"first"}
    assert len(read.log_updates or ()) == EDITORS * EDITS
    assert len(read.samples or ()) == 3
    assert [path.name for path in Path(log).parent.iterdir()] == [Path(log).name]


def _edited(log: str, name: int) -> int:
    with running([sys.executable, "-c", EDITOR, log, str(name), str(EDITS)]) as child:
        return child.wait(_DEADLINE)


def test_two_editors_of_a_log_in_memory_lose_nothing() -> None:
    log = finished("memory://two-editors")

    def edit(name: int) -> None:
        for number in range(EDITS):
            edit_eval_log(log, [TagsEdit(tags_add=[f"{name}-{number}"])])

    with ThreadPoolExecutor(EDITORS) as pool:
        list(pool.map(edit, range(EDITORS)))
    assert len(read_eval_log(log).tags) == EDITORS * EDITS + 1


def test_an_edit_is_made_again_when_somebody_was_faster(log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a store that can't hold logs, and somebody who changes the log while it is being changed
    monkeypatch.setattr(type(store_for(log)[0]), "hold", lambda self, name: _nothing())
    rivals = iter(["rival"])

    def change(file: LogFile) -> LogEdit:
        header = file.header(reductions=False)
        for tag in rivals:
            edit_eval_log(log, [TagsEdit(tags_add=[tag])])
        header.eval.tags = [*(header.eval.tags or ()), "mine"]
        return LogEdit(header)

    change_eval_log(log, change)
    # then both changes are in it
    assert read_eval_log(log).tags == ["first", "mine", "rival"]


def _nothing() -> Any:
    from proctor.contracts import LogLease

    return LogLease()


def test_a_log_that_is_written_back_must_be_as_it_was_read(log: str) -> None:
    # given two who read a log
    one, other = read_eval_log(log), read_eval_log(log)
    one.eval.tags = ["one"]
    other.eval.tags = ["other"]
    # when both write it back
    write_eval_log(one)
    with pytest.raises(FileExistsError, match="somebody else has changed"):
        write_eval_log(other)
    # then the first one's word stands, and that one can go on
    assert read_eval_log(log).tags == ["one"]
    one.eval.tags = ["more"]
    write_eval_log(one, header_only=True)
    assert read_eval_log(log).tags == ["more"]
    # and who means to can have it otherwise
    write_eval_log(other, if_match="*")
    assert read_eval_log(log).tags == ["other"]


def test_a_log_elsewhere_is_written_whatever_became_of_the_one_that_was_read(log: str, tmp_path: Path) -> None:
    read = read_eval_log(log)
    edit_eval_log(log, [TagsEdit(tags_add=["later"])])
    copy = write_eval_log(read, tmp_path / f"copy{Path(log).suffix}")
    assert read_eval_log(copy).tags == ["first"]


def _writes(log: str) -> None:
    read = read_eval_log(log)
    write_eval_log(read, header_only=True)


@pytest.mark.parametrize("edit", [lambda log: edit_eval_log(log, [TagsEdit(tags_add=["x"])]), _writes])
@pytest.mark.parametrize("folder", ["file", "memory://live"])
def test_a_log_that_its_run_still_writes_is_refused(edit: Callable[[str], object], folder: str, tmp_path: Path) -> None:
    writer = LogWriter.open(str(tmp_path) if folder == "file" else folder, spec(), EvalPlan())
    try:
        with pytest.raises(LogBusyError, match="in use"):
            edit(writer.location)
    finally:
        writer.finish("success", None, stats())
    edit(writer.location)


def test_a_log_that_was_not_finished_is_to_be_recovered_first(tmp_path: Path) -> None:
    log = finished(str(tmp_path))
    header = read_eval_log(log, header_only=True)
    header.status = "started"
    write_eval_log(header, header_only=True)
    with pytest.raises(UsageError, match="proctor log recover"):
        edit_eval_log(log, [TagsEdit(tags_add=["x"])])


def test_who_does_not_let_go_of_a_log_is_named_after_a_while(log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.log._edit._HOLDS", 3)
    waits: list[float] = []
    with hold_eval_log(log), pytest.raises(LogBusyError, match="in use"):
        change_eval_log(log, lambda file: LogEdit(file.header()), sleep=waits.append)
    assert len(waits) == 2


def test_a_missing_log_is_named() -> None:
    with pytest.raises(UsageError, match=r"no log at nowhere\.eval"):
        edit_eval_log("nowhere.eval", [TagsEdit(tags_add=["x"])])


def test_summaries_stay_in_their_order(log: str) -> None:
    before = [(row.id, row.epoch) for row in read_eval_log_sample_summaries(log)]
    edit_eval_log(log, [TagsEdit(tags_add=["x"])])
    assert [(row.id, row.epoch) for row in read_eval_log_sample_summaries(log)] == before


@pytest.mark.parametrize(
    "edit", [MetadataEdit(metadata_set={"proctor": {}}), MetadataEdit(metadata_remove=["proctor"])]
)
def test_what_proctor_says_of_a_run_is_not_for_edits(log: str, edit: MetadataEdit) -> None:
    before = Path(log).read_bytes()
    with pytest.raises(UsageError, match="'proctor' is what Proctor itself says of the run"):
        edit_eval_log(log, [edit])
    assert Path(log).read_bytes() == before

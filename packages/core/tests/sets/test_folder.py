"""What is found in the folder of a set, whatever lies there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_samples import sample, spec

from proctor.log import FileStore, write_eval_log
from proctor.schema import EvalLog
from proctor.sets import scan_folder

TIME = "2026-11-29T11-19-30-00-00"


def _write(folder: Path, name: str, unit: str | None, created: str = "2026-11-29T11:19:30+00:00") -> None:
    metadata = {"proctor": {"unit": unit}} if unit else None
    log = EvalLog(eval=spec(created=created, metadata=metadata), status="success", samples=[sample()])
    write_eval_log(log, str(folder / name))


def test_logs_of_ours_newest_first_and_everything_else_as_what_it_is(tmp_path: Path) -> None:
    _write(tmp_path, f"{TIME}_quiz_a.eval", "u1")
    _write(tmp_path, f"{TIME}_quiz_b.json", "u2", created="2026-11-30T11:19:30+00:00")
    _write(tmp_path, f"{TIME}_theirs_c.eval", None)
    _write(tmp_path, f"below/{TIME}_quiz_d.eval", "u1")
    whole = (tmp_path / f"{TIME}_quiz_a.eval").read_bytes()
    (tmp_path / "empty.eval").touch()
    (tmp_path / "junk.eval").write_bytes(os.urandom(300))
    (tmp_path / "torn.eval").write_bytes(whole[:40])
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".hidden").write_text("mine")
    for companion in ("logs.json", "eval-set.json", ".eval-set-id"):
        (tmp_path / companion).write_text("{}")

    found = scan_folder(str(tmp_path))

    assert [log.eval.metadata["proctor"]["unit"] for log in found.logs if log.eval.metadata] == ["u2", "u1"]
    assert [alien.name for alien in found.aliens] == [
        f"{TIME}_theirs_c.eval",
        "empty.eval",
        "junk.eval",
        "notes.txt",
        "torn.eval",
    ]
    what = {alien.name: alien.what for alien in found.aliens}
    assert what["notes.txt"] == "not a log"
    assert what["empty.eval"] == "empty"
    assert what[f"{TIME}_theirs_c.eval"] == "a log of another program"
    assert what["junk.eval"].startswith("not a log that can be read (")


def test_of_two_that_began_in_one_second_the_newest_is_the_one_that_was_written_last(tmp_path: Path) -> None:
    names = [f"{TIME}_quiz_a.eval", f"{TIME}_quiz_a-2.eval", f"{TIME}_quiz_a-10.eval"]
    for seconds, name in enumerate(names):
        _write(tmp_path, name, "u")
        os.utime(tmp_path / name, (seconds, seconds))
    assert [Path(log.location).name for log in scan_folder(str(tmp_path)).logs] == names[::-1]


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    found = scan_folder(str(tmp_path / "nowhere"))
    assert (found.logs, found.aliens) == ((), ())
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("own", [None, 3, "text", [], {"unit": None}, {"unit": 3}, {"unit": {}}])
def test_metadata_of_any_shape_is_that_of_another_program(tmp_path: Path, own: object) -> None:
    log = EvalLog(eval=spec(metadata={"proctor": own}), status="success", samples=[])
    write_eval_log(log, str(tmp_path / f"{TIME}_quiz_a.eval"))
    assert [alien.what for alien in scan_folder(str(tmp_path)).aliens] == ["a log of another program"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=400) | st.binary(max_size=100).map(lambda tail: b"PK\x03\x04" + tail),
    name=st.sampled_from(["x.eval", f"{TIME}_a_b.json", f"{TIME}_a_b.eval", "x.json"]),
)
def test_any_bytes_at_all_are_an_alien(tmp_path: Path, content: bytes, name: str) -> None:
    for file in tmp_path.iterdir():
        file.unlink()
    (tmp_path / name).write_bytes(content)
    found = scan_folder(str(tmp_path))
    assert found.logs == ()
    assert [alien.name for alien in found.aliens] == [name]


@pytest.mark.slow
def test_thousands_of_logs_are_read_by_their_headers_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tmp_path / f"{TIME}_quiz_first.eval"
    log = EvalLog(eval=spec(100, metadata={"proctor": {"unit": "u"}}), status="success")
    log.samples = [sample(id, question=os.urandom(4_000).hex()) for id in range(1, 101)]
    write_eval_log(log, str(first))
    for number in range(1_999):
        os.link(first, tmp_path / f"{TIME}_quiz_{number:022}.eval")
    read, moved = FileStore.read, 0

    def counted(self: FileStore, name: str, start: int = 0, end: int | None = None) -> bytes:
        nonlocal moved
        found = read(self, name, start, end)
        moved += len(found)
        return found

    monkeypatch.setattr(FileStore, "read", counted)
    assert len(scan_folder(str(tmp_path)).logs) == 2_000
    assert moved / 2_000 < first.stat().st_size / 4

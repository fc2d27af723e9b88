"""The one file with the headers of all logs of a folder."""

from __future__ import annotations

import json
from pathlib import Path

from log_samples import sample, spec

from proctor.log import read_eval_log, write_eval_log, write_log_dir_manifest
from proctor.schema import EvalLog


def test_it_has_every_header_by_relative_name_and_no_sample(tmp_path: Path) -> None:
    names = ["2026-11-29T11-19-30-00-00_a_1.eval", "below/2026-11-29T11-19-30-00-00_b_2.json"]
    for name in names:
        write_eval_log(EvalLog(eval=spec(), status="success", samples=[sample()]), str(tmp_path / name))
    (tmp_path / "torn.eval").write_bytes(b"PK\x03\x04 and so on")
    (tmp_path / "notes.txt").write_text("mine")
    location = write_log_dir_manifest(str(tmp_path))
    found = json.loads(Path(location).read_text())
    assert Path(location) == tmp_path / "logs.json"
    assert sorted(found) == sorted(names)
    for name, header in found.items():
        assert "samples" not in header
        assert header["eval"]["task_id"] == read_eval_log(str(tmp_path / name), header_only=True).eval.task_id


def test_a_store_gets_one_too() -> None:
    write_eval_log(EvalLog(eval=spec(), status="success", samples=[]), "memory://manifest/a.eval")
    assert write_log_dir_manifest("memory://manifest") == "memory://manifest/logs.json"
    from proctor.log import store_for

    store, name = store_for("memory://manifest/logs.json")
    assert list(json.loads(store.read(name))) == ["a.eval"]

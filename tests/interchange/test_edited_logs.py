"""Logs that we edited or scored anew, as the peer sees them: it reads all of it and shows the edits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor import Task, eval, score
from proctor.dataset import Sample
from proctor.engine import edit_score, invalidate_samples
from proctor.log import MetadataEdit, Provenance, ScoreEdit, TagsEdit, edit_eval_log
from proctor.scorer import exact, includes

pytestmark = pytest.mark.peer

WHO = Provenance(author="ann", timestamp="2026-11-29T12:00:00Z", reason="looked at it")
LOGS = Path(__file__).parents[1] / "data" / "eval-logs"


def _edited(log: str) -> None:
    edit_eval_log(log, [TagsEdit(tags_add=["good"]), MetadataEdit(metadata_set={"checked": 1})], WHO)


@pytest.mark.parametrize("format", ["eval", "json"])
def test_the_peer_sees_every_edit(peer: Any, tmp_path: Path, format: Any) -> None:
    # given a log of ours, edited in every way
    task = Task(
        dataset=[Sample(input="q", target="xyz"), Sample(input="q", target="Default")], scorer=includes(), epochs=2
    )
    [made] = eval(task, model="mock/model", display="none", log_dir=str(tmp_path), log_format=format)
    log = made.location
    _edited(log)
    invalidate_samples(log, [(2, 1)], WHO)
    edit_score(log, 1, "includes", ScoreEdit(value="C"), provenance=WHO)
    score(log, exact(), overwrite=True)
    # then the peer reads it without a word, and has them all
    seen = peer.ask("full", path=log)
    assert seen["tags"] == ["good"] and seen["metadata"]["checked"] == 1 and seen["invalidated"]
    assert [update["provenance"]["author"] for update in seen["log_updates"]] == ["ann"]
    first, second = (next(one for one in seen["samples"] if one["id"] == id) for id in (1, 2))
    assert second["invalidation"]["reason"] == "looked at it"
    assert [entry["value"] for entry in first["scores"]["includes"]["history"]] == ["I", "C"]
    assert first["scores"]["exact"]["value"] == "I"
    assert [row["scorer"] for row in seen["results"]["scores"]] == ["includes", "exact"]
    assert [row["scorer"] for row in seen["reductions"]] == ["includes", "exact"]
    rows = {(row["id"], row["epoch"]): row for row in peer.ask("summaries", path=log)}
    assert rows[1, 1]["scores"]["includes"]["value"] == "C"
    assert peer.ask("sample", path=log, id=1)["scores"]["includes"]["value"] == "C"


@pytest.mark.parametrize("name", ["simple_success.eval", "tool_calls.eval"])
def test_a_log_of_the_peer_is_edited_and_stays_its_own(peer: Any, tmp_path: Path, name: str) -> None:
    log = tmp_path / name
    log.write_bytes((LOGS / name).read_bytes())
    before = peer.ask("full", path=log)
    _edited(str(log))
    seen = peer.ask("full", path=log)
    assert seen["tags"] == [*before["tags"], "good"]
    for part in ("eval", "samples", "results", "reductions", "stats"):
        assert seen.get(part) == before.get(part)

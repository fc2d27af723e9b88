"""The peer's own logs, read by us and written back, are the same logs to the peer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.log import convert_eval_logs, read_eval_log, write_eval_log

pytestmark = pytest.mark.peer

LOGS = Path(__file__).parents[1] / "data" / "eval-logs"
CHUNKED = "chunked_samples.eval"  # the peer itself cannot read its samples
FILES = sorted(path.name for path in LOGS.iterdir() if path.suffix in (".eval", ".json"))


def _comparable(log: Any) -> str:
    """The log as text, without what depends on where it is; NaN equals NaN in text."""
    for name in ("location", "etag"):
        log.pop(name, None)
    return json.dumps(log, sort_keys=True, indent=1)


@pytest.mark.parametrize("to", ["eval", "json"])
@pytest.mark.parametrize("name", [name for name in FILES if name != CHUNKED])
def test_nothing_is_lost_for_the_peer(peer: Any, tmp_path: Path, name: str, to: str) -> None:
    # given a log that the peer wrote
    before = peer.ask("full", path=LOGS / name)
    # when we read it and write it in either format
    target = tmp_path / f"{Path(name).stem}.{to}"
    write_eval_log(read_eval_log(LOGS / name), target)
    # then the peer sees what it saw before
    assert _comparable(peer.ask("full", path=target)) == _comparable(before)


@pytest.mark.parametrize("name", [name for name in FILES if name != CHUNKED and name.endswith(".eval")])
def test_summaries_are_made_as_the_peer_makes_them(peer: Any, tmp_path: Path, name: str) -> None:
    before = peer.ask("summaries", path=LOGS / name)
    target = tmp_path / name
    write_eval_log(read_eval_log(LOGS / name), target)

    def order(row: Any) -> tuple[str, int]:
        return str(row["id"]), row["epoch"]

    after = peer.ask("summaries", path=target)
    assert json.dumps(sorted(after, key=order), indent=1, sort_keys=True) == json.dumps(
        sorted(before, key=order), indent=1, sort_keys=True
    )


@pytest.mark.parametrize("resolve", ["core", "full"])
@pytest.mark.parametrize(
    "name", ["tool_calls.eval", "image_data_uri.eval", "log_model_api.eval", "agent_tool_and_handoff.eval"]
)
def test_attachments_are_put_back_as_the_peer_does(peer: Any, name: str, resolve: Any) -> None:
    ours = json.loads(read_eval_log(LOGS / name, resolve_attachments=resolve).model_dump_json(exclude_none=True))
    theirs = peer.ask("full", path=LOGS / name, resolve=resolve)
    for our, their in zip(ours["samples"], theirs["samples"], strict=True):
        assert _comparable({"events": our["events"]}) == _comparable({"events": their["events"]})
        assert _comparable(our["attachments"]) == _comparable(their["attachments"])


def test_chunked_samples_are_copied(peer: Any, tmp_path: Path) -> None:
    target = tmp_path / CHUNKED
    write_eval_log(read_eval_log(LOGS / CHUNKED), target)
    assert _comparable(peer.ask("header", path=target)) == _comparable(peer.ask("header", path=LOGS / CHUNKED))
    assert peer.ask("summaries", path=target) == peer.ask("summaries", path=LOGS / CHUNKED)


def test_a_folder_is_converted_sample_by_sample(peer: Any, tmp_path: Path) -> None:
    made = convert_eval_logs(LOGS / "dir_eval_set", "json", tmp_path)
    assert len(made) == 4
    for path in made:
        source = LOGS / "dir_eval_set" / f"{Path(path).stem}.eval"
        assert _comparable(peer.ask("full", path=path)) == _comparable(peer.ask("full", path=source))


def test_the_peer_rewrites_our_logs_unchanged(peer: Any, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.eval", tmp_path / "theirs.eval"
    write_eval_log(read_eval_log(LOGS / "tool_calls.eval"), ours)
    peer.ask("rewrite", path=ours, target=theirs)
    before = json.loads(read_eval_log(ours, resolve_attachments=True).model_dump_json())
    after = json.loads(read_eval_log(theirs, resolve_attachments=True).model_dump_json())
    assert _comparable({"samples": after["samples"]}) == _comparable({"samples": before["samples"]})

"""Resumes across the two systems: the peer reads a log that we resumed, and ours says what it makes of the peer's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor import Task, eval_retry
from proctor.contracts import UsageError
from proctor.dataset import Sample
from proctor.engine import Agenda, run
from proctor.log import index_eval_log
from proctor.model import ModelOutput, get_model
from proctor.scorer import includes
from proctor.solver import generate, solver


@solver
def fails(ids: Any) -> Any:
    async def solve(state: Any, generate: Any) -> Any:
        if state.sample_id in ids:
            raise ValueError(f"no {state.sample_id}")
        return state

    return solve


@pytest.mark.parametrize("format", ["eval", "json"])
def test_the_peer_reads_a_resumed_log_as_its_own(peer: Any, tmp_path: Path, format: str) -> None:
    # given a run of which two samples failed, and replies that were cut short
    failing = {"b", "d"}
    samples = [Sample(input=f"Say {name}", target="Default", id=name, metadata={"n": 1}) for name in "abcde"]
    task = Task(dataset=samples, solver=[fails(failing), generate()], scorer=includes(), name="letters")
    short = ModelOutput.from_content("model", "Default", stop_reason="max_tokens")
    model = get_model("mock/model", custom_outputs=lambda *_: short, memoize=False)
    options = {"display": "none", "log_dir": str(tmp_path), "log_format": format, "fail_on_error": False}
    [first] = run(task, model, options).logs
    failing.clear()

    # when it is resumed
    def agenda(units: Any) -> Agenda:
        return Agenda(prior={units[0].id: [index_eval_log(first.location)]})

    [ours] = run(task, model, options, agenda).logs

    # then the peer reads all of it without a word, and finds what we found
    theirs = peer.ask("full", path=ours.location)
    assert theirs["status"] == "success" and theirs["eval"]["task_id"] == first.eval.task_id
    assert [one["id"] for one in theirs["samples"]] == list("abcde")
    assert [len(one.get("error_retries") or ()) for one in theirs["samples"]] == [0, 1, 0, 1, 0]
    rows = peer.ask("summaries", path=ours.location)
    assert sorted(row["id"] for row in rows) == list("abcde") and all(row["completed"] for row in rows)
    assert ours.results is not None
    [score] = theirs["results"]["scores"]
    assert score["metrics"]["accuracy"]["value"] == ours.results.scores[0].metrics["accuracy"].value


@pytest.mark.parametrize("name", ["epochs3_reducers.eval", "chunked_samples.eval"])
def test_a_log_of_the_peer_is_refused_with_the_reason(sample_logs: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"made by Inspect AI: nothing in it says|stored in chunks"):
        eval_retry(sample_logs / name, display="none")

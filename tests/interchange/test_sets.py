"""The folder of a set, as the peer reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proctor import Task, eval_set
from proctor.dataset import Sample
from proctor.model import ModelOutput, get_model
from proctor.scorer import includes

_left = [1]


def _fails_once(*_: Any) -> ModelOutput:
    if _left:
        _left.pop()
        raise OSError("no route to host")
    return ModelOutput.from_content("model", "Default")


def test_the_peer_takes_the_folder_of_a_set_as_its_own(peer: Any, tmp_path: Path) -> None:
    tasks = [Task(name=name, dataset=[Sample(input="q", target="Default", id=1)], scorer=includes()) for name in "ab"]
    models = ["mock/a", get_model("mock/b", custom_outputs=_fails_once, memoize=False)]
    roles = {"grader": "mock/judge"}
    success, logs = eval_set(
        tasks, model=models, model_roles=roles, log_dir=str(tmp_path), retry_wait=0.0, display="none"
    )
    assert success
    found = peer.ask("eval_set", folder=tmp_path)
    assert found["id"] == found["set"]["eval_set_id"] == (tmp_path / ".eval-set-id").read_text()
    rows = [(each["name"], each["model"], each["task_id"], each["sequence"]) for each in found["set"]["tasks"]]
    assert rows == [(log.eval.task, log.eval.model, log.eval.task_id, place) for place, log in enumerate(logs)]
    assert [each["model_roles"] for each in found["set"]["tasks"]] == [roles] * 4
    assert len(found["headers"]) == 5  # the failed attempt has one, too
    for log in logs:
        header = found["headers"][Path(log.location).name]
        assert header["status"] == "success" and header["eval"]["eval_set_id"] == found["id"]
    listed = {info["task_id"] for info in peer.ask("names", folder=tmp_path)}
    assert listed == {log.eval.task_id for log in logs}

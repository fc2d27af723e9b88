"""What the observer writes of a whole run."""

from __future__ import annotations

import json
from pathlib import Path

from proctor import Task
from proctor import eval as evaluate
from proctor.dataset import Sample
from proctor.scorer import includes


def test_a_run_is_told_from_its_start_to_its_end(tmp_path: Path) -> None:
    samples = [Sample(id=name, input="Hello?", target="Default") for name in ("a", "b")]
    task = Task(name="greeting", dataset=samples, scorer=includes())
    file = tmp_path / "events" / "acme.jsonl"

    observers = [f"acme:file={file}"]

    [log] = evaluate(task, model="mock/model", log_dir=str(tmp_path), display="none", observers=observers)

    events = [json.loads(line) for line in file.read_text().splitlines()]
    told = [event["event"] for event in events]
    assert told == ["run_start", "task_start", "sample_end", "sample_end", "task_end", "run_end"]
    assert {event["id"] for event in events if event["event"] == "sample_end"} == {"a", "b"}
    assert events[0]["run"] == log.eval.run_id
    assert events[-2]["status"] == "success"
    assert events[-1]["exit_code"] == 0

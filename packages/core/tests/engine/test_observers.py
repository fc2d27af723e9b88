from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor import Task, eval
from proctor.dataset import Sample
from proctor.scorer import includes

PLUGIN = """
from proctor.contracts import Observer, ObserverProvider
from proctor.hookspecs import hookimpl

TOLD = []

class Notes(Observer):
    def run_start(self, event): TOLD.append(("run_start", [unit.task for unit in event.units]))
    def task_start(self, event): TOLD.append(("task_start", event.spec.task))
    def sample_end(self, event):
        summary = event.summary
        TOLD.append(("sample_end", summary.id, summary.scores["includes"].value, event.load().output.completion))
    def task_end(self, event): TOLD.append(("task_end", event.header.status, event.location))
    def run_end(self, event):
        TOLD.append(("run_end", event.exit_code, [row.metrics["accuracy"] for row in event.table]))

class Broken(Observer):
    def sample_end(self, event): raise RuntimeError("no thanks")

@hookimpl
def proctor_observers():
    return [
        ObserverProvider(name="notes", factory=lambda args: Notes()),
        ObserverProvider(name="broken", factory=lambda args: Broken()),
    ]
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_observers_are_told_in_order_after_the_fact_and_a_broken_one_disturbs_nobody(
    tmp_path: Path, backend: str, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"notes_{backend}.py"
    file.write_text(PLUGIN)
    told: list[tuple[Any, ...]] = []
    [log] = eval(
        Task(dataset=[Sample(input="q", target="Default", id=n) for n in (1, 2)], scorer=includes(), name="watched"),
        model="mock/model",
        display="none",
        log_dir=str(tmp_path / "logs"),
        async_backend=backend,
        plugins=[str(file)],
        observers=["notes", "broken"],
    )
    assert log.status == "success"
    told = _told(file)
    assert told[0] == ("run_start", ["watched"])
    assert told[1] == ("task_start", "watched")
    assert sorted(told[2:4]) == [
        ("sample_end", 1, "C", "Default output from mock/model"),
        ("sample_end", 2, "C", "Default output from mock/model"),
    ]
    assert told[4:] == [("task_end", "success", log.location), ("run_end", 0, [1.0])]
    assert "no thanks" in capfd.readouterr().err


def _told(file: Path) -> list[tuple[Any, ...]]:
    import sys

    module = next(m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == str(file))
    found: list[tuple[Any, ...]] = module.TOLD  # type: ignore[attr-defined]  # the plugin above
    return found

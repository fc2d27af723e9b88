"""What the screen shows: of a whole run, and of things that are rare in one."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from proctor import Task
from proctor import eval as evaluate
from proctor.contracts import RunSnapshot, UnitSnapshot
from proctor.dataset import Sample
from proctor.scorer import includes

from proctor_display_acme._display import AcmeDisplay


def test_a_run_is_shown_from_its_plan_to_its_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = Task(name="greeting", dataset=[Sample(input="Hello?", target="Default")], scorer=includes())

    evaluate(task, model="mock/model", log_dir=str(tmp_path), display="acme:every=0")

    shown = capsys.readouterr().out
    assert "greeting mock/model: 1 samples\n" in shown
    assert "includes accuracy 1.000, 1 of 1 scored\n" in shown
    assert f"log: {tmp_path}" in shown


def test_of_many_changes_few_are_written() -> None:
    out = io.StringIO()
    display = AcmeDisplay(out, every=10)

    for tenth in range(300):  # half a minute
        display.update(RunSnapshot(units=(UnitSnapshot("greeting", "mock/model", done=tenth),), elapsed=tenth / 10))

    assert out.getvalue().splitlines() == ["0 s: 0 samples", "10 s: 100 samples", "20 s: 200 samples"]


def test_a_name_can_not_drive_the_terminal() -> None:
    out = io.StringIO()

    AcmeDisplay(out).start(RunSnapshot(units=(UnitSnapshot("evil\x1b[2J", "mock/model", total=1),)))

    assert "\x1b" not in out.getvalue()

"""A first task, and the sweep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from proctor import eval
from proctor.model import get_model

Load = Callable[[str], ModuleType]


def test_a_first_task(example: Load, options: dict[str, Any]) -> None:
    model = get_model("mock/model", memoize=False, custom_outputs=["4", "It is 41."])

    [log] = eval(example("hello").hello(), model=model, max_connections=1, max_samples=1, **options)

    assert log.results is not None
    assert log.results.scores[0].metrics["accuracy"].value == 0.5


def test_the_sweep_writes_one_log_for_each_temperature(
    example: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = example("sweep")

    rows = sweep.main(["--display", "none", "--epochs", "1", "--log-dir", str(tmp_path)])

    assert [temperature for temperature, _ in rows] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert len(list(tmp_path.glob("*.eval"))) == 6
    assert capsys.readouterr().out.count("success") == 6

"""Records that the engine makes without validation are whole: each field of their class, in its order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from proctor import Task
from proctor.dataset import Sample
from proctor.log import LogWriter
from proctor.schema import EvalLog, EvalSample, EvalSampleScore
from proctor.scorer import match
from proctor.solver import generate


def _records(value: Any) -> Iterator[BaseModel]:
    if isinstance(value, BaseModel):
        yield value
        value = list(value.__dict__.values())
    elif isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _records(item)


def test_no_record_of_a_run_lacks_a_field(run: Callable[..., list[EvalLog]], monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    write, reduction = LogWriter.write, LogWriter.reduction

    def noted(self: LogWriter, sample: EvalSample, *args: Any, **options: Any) -> None:
        written.append(sample)
        write(self, sample, *args, **options)

    def reduced(self: LogWriter, scorer: str, reducer: str | None, score: EvalSampleScore) -> None:
        written.append(score)
        reduction(self, scorer, reducer, score)

    monkeypatch.setattr(LogWriter, "write", noted)
    monkeypatch.setattr(LogWriter, "reduction", reduced)

    [log] = run(Task([Sample(input="What is 2 + 2?", target="4")], solver=generate(), scorer=match()))

    assert log.status == "success"
    records = list(_records(written))
    assert {type(record).__name__ for record in records} >= {"EvalSample", "EvalSampleScore", "ModelEvent", "Score"}
    for record in records:
        assert list(record.__dict__) == list(type(record).model_fields), type(record).__name__

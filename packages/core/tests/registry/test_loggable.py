"""Arguments as a log shows them: the same in every process, and without secrets."""

from __future__ import annotations

import enum
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from proctor.engine._load import find_tasks
from proctor.model import GenerateConfig
from proctor.registry import loggable
from proctor.solver import generate, solver

HERE = __name__


class Opaque:
    pass


class Spoken:
    def __str__(self) -> str:
        return "spoken"


class Greedy(BaseModel):
    width: int = 1
    note: str | None = None


class Odd(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    held: Any = None


@dataclass
class Plan:
    steps: int = 2
    inner: Any = None
    cache: dict[str, int] = field(default_factory=dict, repr=False)


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Opaque(), f"{HERE}.Opaque"),
        (Opaque, f"{HERE}.Opaque"),
        (Greedy, f"{HERE}.Greedy"),
        (int, "int"),
        (Spoken(), "spoken"),
        (Greedy(width=3), {"type": f"{HERE}.Greedy", "fields": {"width": 3}}),
        (Odd(held=Opaque()), {"type": f"{HERE}.Odd", "fields": {"held": f"{HERE}.Opaque"}}),
        (Plan(inner=[Opaque()]), {"type": f"{HERE}.Plan", "fields": {"steps": 2, "inner": [f"{HERE}.Opaque"]}}),
        (GenerateConfig(temperature=0.5), {"temperature": 0.5}),
        (Colour.RED, "Colour.RED"),
        ({"b", "a"}, ["a", "b"]),
        (frozenset({2, 10}), [10, 2]),
        ((1, None, True, 0.5, "x"), [1, None, True, 0.5, "x"]),
        ({1: Path("a/b")}, {"1": "a/b"}),
        (os.path.join, "join"),
        ({"token": "abc", "max_tokens": 5}, {"token": "[removed]", "max_tokens": 5}),
        (
            Plan(inner={"api_key": "abc"}),
            {"type": f"{HERE}.Plan", "fields": {"steps": 2, "inner": {"api_key": "[removed]"}}},
        ),
    ],
)
def test_a_value_as_data(value: Any, shown: Any) -> None:
    assert loggable(value) == shown
    json.dumps(loggable(value))


@pytest.mark.parametrize("value", [Opaque(), partial(Opaque), iter([1]), "".join, [Plan(inner=Opaque())]])
def test_no_text_holds_an_address(value: Any) -> None:
    assert "0x" not in str(loggable(value))


def test_data_that_holds_itself_ends() -> None:
    plan = Plan()
    plan.inner = [plan, plan]
    assert loggable(plan)["fields"]["inner"] == ["...", "..."]


def test_a_component_among_arguments_keeps_its_own_and_loses_their_secrets() -> None:
    @solver
    def asks(api_key: str, inner: Any) -> Any:
        return generate()

    shown = loggable({"solver": asks("sk", inner=Opaque())})
    assert shown["solver"] == {
        "type": "solver",
        "name": "asks",
        "params": {"api_key": "[removed]", "inner": f"{HERE}.Opaque"},
    }


def test_secrets_stay_in_a_comparison_that_nobody_reads() -> None:
    assert loggable({"password": "a"}, keep_secrets=True) != loggable({"password": "b"}, keep_secrets=True)


def _shown_by_another_process(tmp_path: Path, seed: str) -> Any:
    program = (
        "import json, mine\nfrom proctor.registry import loggable\n"
        "print(json.dumps(loggable([mine.Thing(), mine.Thing, {'x', 'y', 'z'}, lambda: 0, mine.bound])))"
    )
    path = os.pathsep.join([str(tmp_path), *(part for part in sys.path if part)])
    environ = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_two_processes_show_the_same(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import functools\nclass Thing:\n    def go(self): pass\nbound = functools.partial(Thing().go)\n"
    )
    first, second = (_shown_by_another_process(tmp_path, seed) for seed in ("1", "2"))
    assert first == second


def test_a_class_in_a_task_file_is_named_without_the_place_of_the_file(tmp_path: Path) -> None:
    shown = set()
    for folder in ("a", "b"):
        file = tmp_path / folder / "quiz.py"
        file.parent.mkdir()
        file.write_text(
            "from proctor import Task, task\nfrom proctor.registry import loggable\n"
            "class Thing: pass\n@task\ndef quiz():\n    return Task(metadata={'shown': loggable(Thing())})\n"
        )
        [source] = find_tasks(str(file))
        shown.add(source.load({}).metadata["shown"])
    assert shown == {"quiz.Thing"}

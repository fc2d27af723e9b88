"""Units of one name are told apart by the fewest settings that do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from proctor import Task, task
from proctor.dataset import Sample
from proctor.engine import run
from proctor.model import GenerateConfig
from proctor.scorer import includes


@task
def quiz(subject: str = "law", shots: int = 0, heat: float | None = None, **more: Any) -> Task:
    """A task with settings."""
    return Task(
        dataset=[Sample(input="q", target="a")],
        scorer=includes(),
        config=GenerateConfig(temperature=heat),
        model_roles=more.get("roles"),
    )


@task
def other() -> Task:
    """Another."""
    return Task(dataset=[Sample(input="q", target="a")], scorer=includes())


def labels(tasks: Sequence[Task], model: Any = "mock/model", **options: Any) -> list[str]:
    return [unit.label for unit in run(list(tasks), model, {"dry_run": True, "display": "none", **options}).units]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([{"heat": 0.2}, {"heat": 0.4}], ["heat=0.2", "heat=0.4"]),
        ([{}, {"shots": 5}], ["shots=0", "shots=5"]),
        ([{"subject": "law", "shots": 0}, {"subject": "art", "shots": 5}], ["subject=law", "subject=art"]),
        (
            [{"subject": s, "shots": n} for s in ("law", "art") for n in (0, 5)],
            ["subject=law shots=0", "subject=law shots=5", "subject=art shots=0", "subject=art shots=5"],
        ),
        ([{"subject": "a" * 40}, {"subject": "b"}], [f"subject={'a' * 23}…", "subject=b"]),
    ],
)
def test_task_arguments_tell_apart(arguments: Sequence[Mapping[str, Any]], expected: list[str]) -> None:
    assert labels([quiz(**given) for given in arguments]) == expected


def test_names_and_models_that_differ_need_no_label() -> None:
    assert labels([quiz()]) == [""]
    assert labels([quiz(), other()]) == ["", ""]
    assert labels([quiz()], ["mock/a", "mock/b"]) == ["", ""]


def test_each_model_of_a_sweep_has_the_same_labels() -> None:
    tasks = [quiz(heat=0.2), quiz(heat=0.4), other()]
    assert labels(tasks, ["mock/a", "mock/b"]) == ["heat=0.2"] * 2 + ["heat=0.4"] * 2 + [""] * 2


def test_generation_settings_and_roles_tell_apart_what_arguments_do_not() -> None:
    def plain(**settings: Any) -> Task:
        return Task(name="plain", dataset=[Sample(input="q", target="a")], scorer=includes(), **settings)

    configs = [plain(config=GenerateConfig(top_p=p)) for p in (0.5, 0.9)]
    assert labels(configs) == ["top_p=0.5", "top_p=0.9"]
    roles = [plain(model_roles={"grader": name}) for name in ("mock/a", "mock/b")]
    assert labels(roles) == ["grader=mock/a", "grader=mock/b"]


def test_a_credential_is_in_no_label() -> None:
    configs = [GenerateConfig(extra_headers={"Authorization": f"Bearer s3cret{n}"}, top_k=n) for n in (1, 2)]
    tasks = [Task(name="t", dataset=[Sample(input="q", target="a")], scorer=includes(), config=c) for c in configs]
    assert labels(tasks) == ["top_k=1", "top_k=2"]

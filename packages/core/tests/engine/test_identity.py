"""What makes two units the same work, and what makes them different."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import Task, eval
from proctor.dataset import IterableDataset, MemoryDataset, Sample, select
from proctor.engine import run
from proctor.engine._identity import _fingerprint, identity_changes, ingredients, logged_ingredients, unit_identity
from proctor.model import GenerateConfig, Model, get_model
from proctor.solver import generate, solver, system_message

QUIZ = """
from proctor import Task, task
from proctor.dataset import Sample

@task
def q(level: int = 1, api_key: str = "none"):
    return Task(dataset=[Sample(input=str(n)) for n in range(5)])
"""


@pytest.fixture
def quiz(tmp_path: Path) -> Callable[[str], str]:
    def quiz(path: str) -> str:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(QUIZ)
        return f"{file}@q"

    return quiz


@pytest.fixture
def units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    monkeypatch.chdir(tmp_path)

    def units(tasks: Any, model: Any = "mock/model", **options: Any) -> list[str]:
        planned = run(tasks, model, {"display": "none", "dry_run": True, "log_dir": str(tmp_path / "logs"), **options})
        return [unit.id for unit in planned.units]

    return units


def test_files_of_one_name_in_two_folders_are_two(units: Callable[..., list[str]], quiz: Callable[[str], str]) -> None:
    assert units(quiz("a/quiz.py")) != units(quiz("b/quiz.py"))


def test_another_copy_of_a_repository_is_the_same_work(
    units: Callable[..., list[str]], quiz: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "here" / ".git").mkdir(parents=True)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / ".git").write_text("gitdir: elsewhere")  # a worktree
    assert units(quiz("here/tasks/quiz.py")) == units(quiz("there/tasks/quiz.py"))


def test_the_folder_that_one_stands_in_does_not_matter_inside_a_repository(
    units: Callable[..., list[str]], quiz: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    first = units(quiz("a/quiz.py"))
    monkeypatch.chdir(tmp_path / "a")
    assert units("quiz.py@q") == first


def test_a_task_of_a_package_is_named_by_the_package(
    units: Callable[..., list[str]], quiz: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for place in ("here", "there"):
        quiz(f"{place}/acme_identity/quiz.py")
        (tmp_path / place / "acme_identity" / "__init__.py").write_text("")
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(tmp_path / place))
            import importlib
            import sys

            module = importlib.import_module("acme_identity.quiz")
            found += units(module.q)
            for name in ("acme_identity.quiz", "acme_identity"):
                del sys.modules[name]
    assert len(set(found)) == 1


def test_a_task_object_is_the_same_work_as_its_file(
    units: Callable[..., list[str]], quiz: Callable[[str], str]
) -> None:
    from proctor.engine._load import find_tasks

    path = quiz("a/quiz.py")
    [source] = find_tasks(path)
    assert units(source.make()) == units(path)


def test_what_is_asked_is_in_it_and_how_it_is_run_is_not(
    units: Callable[..., list[str]], quiz: Callable[[str], str]
) -> None:
    path = quiz("a/quiz.py")
    plain = units(path)
    for same in (
        {"sample_shuffle": True},
        {"sample_shuffle": 7},
        {"limit": 2},
        {"epochs": 3},
        {"max_connections": 5},
        {"max_retries": 1},
        {"task_args": {"level": 1}},
        {"tags": ["a"]},
    ):
        assert units(path, **same) == plain, same
    for other in ({"temperature": 0.5}, {"task_args": {"level": 2}}, {"solver": "multiple_choice"}):
        assert units(path, **other) != plain, other
    assert units(path, model="mock/other") != plain


def test_a_new_key_goes_on_with_the_work_of_the_old_one(
    units: Callable[..., list[str]], quiz: Callable[[str], str]
) -> None:
    path = quiz("a/quiz.py")
    first, second = (units(path, task_args={"api_key": key}) for key in ("sk-old", "sk-new"))
    assert first == second


def test_no_secret_is_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []

    def dumps(value: Any, **options: Any) -> str:
        hashed.append(json.JSONEncoder(default=str).encode(value))
        return hashed[-1]

    @solver
    def asks(password: str) -> Any:
        return generate()

    secret = "hunter2-and-more"
    model = get_model(
        "mock/model",
        base_url=f"https://u:{secret}@example.org/v1?key={secret}",
        config=GenerateConfig(extra_headers={"X-Api-Key": secret}, extra_body={"auth": {"token": secret}}),
        memoize=False,
    )
    model.args["api_key"] = secret
    task = Task(dataset=[Sample(input="x")])
    monkeypatch.setattr("proctor.engine._identity.json.dumps", dumps)
    unit_identity(ingredients(task, asks(secret), [], select(task.dataset), model, {"grader": model}))
    text = "".join(hashed)
    assert secret not in text and "example.org" in text and "X-Api-Key" in text


def test_an_argument_without_a_text_of_its_own_is_the_same_in_every_process() -> None:
    class Opaque:
        pass

    @solver
    def uses(thing: Any) -> Any:
        return generate()

    def identity(model: Model) -> str:
        task = Task(dataset=[Sample(input="x")])
        return unit_identity(ingredients(task, uses(Opaque()), [], select(task.dataset), model, {}))

    model = get_model("mock/model")
    kept = [Opaque() for _ in range(3)]  # other addresses
    assert kept and identity(model) == identity(model)


@given(st.lists(st.integers() | st.text(max_size=5), unique_by=str, min_size=1, max_size=20), st.randoms())
def test_the_fingerprint_is_of_the_ids_and_not_of_their_order(ids: list[int | str], random: Any) -> None:
    def fingerprint(ids: Iterable[int | str]) -> Any:
        return _fingerprint(select(MemoryDataset([Sample(input="x", id=id) for id in ids])))

    other = list(ids)
    random.shuffle(other)
    assert fingerprint(ids) == fingerprint(other)
    assert fingerprint(ids) != fingerprint([*ids, "another one"])
    assert fingerprint(ids) != fingerprint([*ids[:-1], "another one"])


def test_samples_that_are_made_as_they_are_wanted_are_not_read() -> None:
    def never() -> Iterable[Sample]:
        raise AssertionError

    assert _fingerprint(select(IterableDataset(never, name="lazy")))["name"] == "lazy"


def test_the_log_says_the_same_identity_as_the_plan(
    units: Callable[..., list[str]], quiz: Callable[[str], str], tmp_path: Path
) -> None:
    path = quiz("a/quiz.py")
    [log] = eval(path, model="mock/model", display="none", log_dir=str(tmp_path / "logs"))
    assert log.eval.metadata is not None
    assert [log.eval.metadata["proctor"]["unit"]] == units(path)


def test_what_differs_between_two_units_is_named_line_by_line(
    tmp_path: Path, quiz: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def plan(path: str, **options: Any) -> Any:
        [unit] = run(path, "mock/model", {"display": "none", "dry_run": True, **options}).units
        return unit.identity

    path = quiz("a/quiz.py")
    before = plan(path)
    assert identity_changes(before, before) == []
    assert identity_changes(before, plan(path, temperature=0.5, max_tokens=5, task_args={"level": 2})) == [
        "args.level: 1 -> 2",
        "model.config.max_tokens: (none) -> 5",
        "model.config.temperature: (none) -> 0.5",
    ]
    Path(path.partition("@")[0]).write_text(QUIZ.replace("range(5)", "range(6)"))
    assert identity_changes(before, plan(path)) == ["dataset.size: 5 -> 6"]
    Path(path.partition("@")[0]).write_text(QUIZ.replace("input=str(n)", "input=str(n), id=n + 2"))
    assert identity_changes(before, plan(path)) == ["dataset.ids: its samples have other ids"]


def test_a_long_text_in_the_identity_is_compared_by_its_hash(units: Callable[..., list[str]], tmp_path: Path) -> None:
    text = "You are a careful judge. " * 100
    logs = [
        eval(
            Task(dataset=[Sample(input="x")], solver=[system_message(text + end), generate()]),
            model="mock/model",
            display="none",
            log_dir=str(tmp_path / "logs"),
        )[0]
        for end in ("a", "b")
    ]
    one, other = (logged_ingredients(log) for log in logs)
    assert one is not None and other is not None and len(json.dumps(one)) < 1500
    [line] = identity_changes(one, other)
    assert "You are a careful judge." in line

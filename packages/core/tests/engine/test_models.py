"""The models of a run: what is refused in the plan, and whose connections a run closes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from engine_runs import answers, sums

from proctor import Task, eval_async, plugins
from proctor.concurrency import run_gates
from proctor.contracts import UsageError
from proctor.engine import run as run_tasks
from proctor.model import GenerateConfig, MockAPI, Model, get_model, use_models
from proctor.schema import EvalLog
from proctor.scorer import includes
from proctor.solver import generate

Run = Callable[..., list[EvalLog]]


def task(**fields: Any) -> Task:
    return Task(dataset=sums(2), solver=generate(), scorer=includes(), **fields)


@pytest.mark.parametrize("name", ["base_url", "role", "config", "memoize", "default", "api_key", "name", "model"])
def test_a_model_argument_with_the_name_of_a_parameter_is_the_provider_s(run: Run, name: str) -> None:
    with pytest.raises(UsageError, match=f"-M {name}=...: 'mock' has no argument '{name}'"):
        run(task(), model_args={name: "x"})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model_roles": {"g": {"model": "mock/m", "temperature": "hot"}}}, "the model role 'g' has temperature='hot'"),
        ({"model_roles": {"g": {"model": "mock/m", "temprature": 1}}}, "did you mean 'temperature'"),
        ({"model_roles": {"g": {"model": "mock/m", "args": [1]}}}, "the model role 'g' has args=[1]"),
        ({"model_roles": {"g": {"model": "mock/m", "base_url": "x"}}}, "the model role 'g': base_url='x' is no addr"),
        ({"model_roles": {"g": {"model": "mock/m", "args": {"role": "x"}}}}, "no argument 'role'"),
        ({"model_roles": {"g": {"temperature": 1}}}, "the model role 'g' names no model"),
        ({"model_roles": {"grader": 3}}, "the model role 'grader' is given 3"),
        ({"model_roles": {"grader": ["mock/a", "mock/b"]}}, "the model role 'grader' is given ['mock/a'"),
        ({"model_roles": {"grader": None}}, "the model role 'grader' names no model"),
        ({"model": "mock/a,,"}, "--model 'mock/a,,' has an empty name"),
        ({"model": ",mock/a"}, "--model ',mock/a' has an empty name"),
        ({"share": "a/b"}, "--share 'a/b' is no name"),
        ({"adaptive_connections": {"min": 9, "max": 3}}, "--adaptive-connections needs 1 <= min <= start <= max"),
        ({"log_dir": ""}, "--log-dir names no folder"),
        ({"epochs": "x"}, "Option epochs='x': it must be a whole number"),
        ({"temperature": "hot"}, "Option temperature='hot': it must be a number"),
        ({"reasoning_history": "some"}, "reasoning_history='some'"),
        ({"stop_seqs": "x"}, "the run has stop_seqs='x', which is not a list"),
        ({"model_base_url": "notaurl"}, "--model-base-url='notaurl' is no address"),
    ],
)
def test_what_is_wrong_with_the_models_is_said_in_one_sentence(run: Run, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        run(task(), **options)

    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_role_may_be_a_model_with_settings(run: Run) -> None:
    seen = []

    async def look(state: Any, generate: Any) -> Any:
        grader = get_model(role="grader")
        seen.append((grader.name, grader.role, grader.config.seed))
        return state

    grader = get_model("mock/grader", config=GenerateConfig(seed=1))
    run(Task(dataset=sums(1), solver=look), model_roles={"grader": {"model": grader, "seed": 2}})

    assert seen == [("mock/grader", "grader", 2)]


class Closable(MockAPI):
    """Says so when it is used after it was closed."""

    open = True

    async def generate(self, *args: Any) -> Any:
        assert self.open, "the model was closed while its run went on"
        return await super().generate(*args)

    async def aclose(self) -> None:
        self.open = False


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Closable]:
    """All models of the provider ``mock``, which can be used until they are closed."""
    record, find = plugins.get("model_providers", "mock"), plugins.get
    models: list[Closable] = []

    def make(name: str, **given: Any) -> Closable:
        models.append(Closable(name, args=given["args"]))
        return models[-1]

    def get(kind: str, name: str) -> Any:
        return replace(record, factory=make) if (kind, name) == ("model_providers", "mock") else find(kind, name)

    monkeypatch.setattr("proctor.plugins.get", get)
    return models


@pytest.mark.anyio
@pytest.mark.parametrize("shared", [False, True])
async def test_the_first_of_two_runs_to_end_leaves_the_other_its_models(
    made: list[Closable], tmp_path: Path, shared: bool
) -> None:
    model: Any = get_model("mock/model", memoize=False) if shared else "mock/model"
    under_way, over = anyio.Event(), anyio.Event()
    logs: list[EvalLog] = []

    async def wait_for_the_other_run(state: Any, generate: Any) -> Any:
        await generate(state)
        under_way.set()
        await over.wait()
        return await generate(state)

    async def long_run() -> None:
        slow = Task(dataset=sums(1), solver=wait_for_the_other_run, name="slow")
        logs.extend(await eval_async(slow, model, display="none", log_dir=str(tmp_path)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(long_run)
        await under_way.wait()
        await eval_async(Task(dataset=sums(1), name="short"), model, display="none", log_dir=str(tmp_path))
        over.set()

    assert logs[0].status == "success"
    assert made and not any(each.open for each in made)


def test_models_that_a_run_is_given_are_closed_at_its_end(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    model = answers()
    closed = []

    async def close() -> None:
        closed.append(model)

    monkeypatch.setattr(model.api, "aclose", close)
    run(task(), model=model)

    assert closed == [model]


@pytest.mark.parametrize("model", ["mock/judge", Model(MockAPI("judge"), name="mock/judge")])
def test_a_grader_s_own_limit_holds_for_all_units_together(model: str | Model) -> None:
    grader = {"model": model, "max_connections": 3}
    options = {"dry_run": True, "display": "none", "model_roles": {"grader": grader}}
    units = run_tasks([task()], ["mock/a", "mock/b"], options).units
    gates = []
    with run_gates():
        for unit in units:
            with use_models(unit.model, unit.roles):
                unit.model.connections()
                gates.append(unit.roles["grader"].connections()[0])
    assert gates[0] is not None and gates[0].limit == 3
    assert gates[1] is gates[0]

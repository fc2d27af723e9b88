"""No credential reaches a log, whatever road it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_runs import answers, sums

from proctor import Task, task
from proctor.contracts import UsageError, record_call
from proctor.model import GenerateConfig, Model, ModelAPI, ModelOutput, get_model
from proctor.schema import EvalLog, ModelEvent, SandboxSpec, ToolCall, ToolEvent
from proctor.scorer import Score, Scorer, accuracy, match, scorer
from proctor.solver import Generate, Solver, TaskState, generate, solver, use_tools
from proctor.tool import Tool, ToolError, tool

SECRET = "hunter2-and-more-4711"
Run = Callable[..., list[EvalLog]]


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path) -> Iterator[None]:
    """The last word: the secret is in no member of any log."""
    yield
    from proctor.log import read_eval_log

    logs = list(tmp_path.glob("*.eval"))
    for log in logs:
        assert SECRET not in read_eval_log(str(log)).model_dump_json()


class Recording(ModelAPI):
    """Says what it is told to, with a raw call."""

    def __init__(
        self, request: Any, response: Any, text: str = "ANSWER: 1", error: Exception | None = None, base_url: str = ""
    ) -> None:
        super().__init__("model", base_url=base_url or None)
        self.told = request, response, text, error

    async def generate(self, *_: Any) -> ModelOutput:
        request, response, text, error = self.told
        record_call(request, response)
        if error is not None:
            raise error
        return ModelOutput.from_content("model", text)

    def connection_key(self) -> str:
        return "recording"


@task
def guarded(api_key: str = SECRET, max_tokens: int = 5, **options: Any) -> Task:
    return Task(dataset=sums(1), scorer=match())


@solver
def logs_in(password: str, user: str = "me") -> Solver:
    return generate()


@scorer(metrics=[accuracy()])
def asks_elsewhere(token: str, options: dict[str, Any]) -> Scorer:
    async def score(state: TaskState, target: Any) -> Score:
        return Score(value="C")

    return score


def test_arguments_of_tasks_solvers_scorers_and_metadata(run: Run) -> None:
    made = guarded(database=f"postgres://u:{SECRET}@db/x")
    made.solver = logs_in(SECRET)
    made.scorers = [asks_elsewhere(SECRET, {"headers": {"X-Auth-Token": SECRET, "X-Team": "blue"}})]
    made.metadata = {"credentials": {"a": SECRET}, "note": "kept"}
    [log] = run(made, model=answers(), metadata={"client_secret": SECRET})
    assert log.eval.task_args == {"api_key": "[removed]", "max_tokens": 5, "database": "postgres://db/x"}
    assert log.plan.steps[0].params == {"password": "[removed]", "user": "me"}
    assert log.eval.scorers is not None and "blue" in log.eval.scorers[0].model_dump_json()
    assert log.eval.metadata is not None and log.eval.metadata["note"] == "kept"


def test_arguments_of_a_solver_that_is_named(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from proctor.solver import generate, solver\n@solver\ndef mine(api_key='', n=1): return generate()\n"
    )
    [log] = run(Task(dataset=sums(1)), model=answers(), solver=str(file), solver_args={"api_key": SECRET, "n": 2})
    assert log.eval.solver_args == {"api_key": "[removed]", "n": 2}


def test_a_wrong_argument_is_told_without_its_value(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "quiz.py"
    file.write_text("from proctor import Task, task\n@task\ndef quiz(pin_password: int = 0): return Task()\n")
    with pytest.raises(UsageError, match=r"-T pin_password=\[removed\] does not fit") as raised:
        run(str(file), task_args={"pin_password": SECRET})
    assert SECRET not in str(raised.value)


def test_arguments_and_settings_of_models(run: Run) -> None:
    config = GenerateConfig(
        extra_headers={"X-Api-Key": SECRET}, extra_body={"auth": {"user": "u", "token": SECRET}, "max_tokens": 7}
    )
    url = f"https://u:{SECRET}@example.org/v1?key={SECRET}"
    model = Model(Recording({"model": "m", **(config.extra_body or {})}, {"id": 1}, base_url=url), config, "mock/model")
    model.args["nested"] = {"headers": {"Authorization": SECRET}, "region": "north"}
    [log] = run(Task(dataset=sums(1), scorer=match()), model=model, log_model_api=True, model_roles={"grader": model})
    assert log.eval.model_base_url == "https://example.org/v1?key=[removed]"
    assert log.eval.model_args["nested"] == {"headers": {"Authorization": "[removed]"}, "region": "north"}
    [event] = [event for event in (log.samples or [])[0].events if isinstance(event, ModelEvent)]
    assert event.call is not None
    assert event.call.request == {"model": "m", "auth": "[removed]", "max_tokens": 7}
    assert event.config.extra_body == {"auth": "[removed]", "max_tokens": 7}


def test_the_configuration_of_a_sandbox(run: Run) -> None:
    config = {"password": SECRET, "image": "x"}
    with pytest.warns(UserWarning, match="takes no configuration"):
        [log] = run(Task(dataset=sums(1), sandbox=SandboxSpec(type="local", config=config)), model=answers())
    assert log.eval.sandbox is not None and log.eval.sandbox.config == {"password": "[removed]", "image": "x"}


def test_errors_of_models_with_the_raw_call(run: Run) -> None:
    said = {"error": {"message": f"refused, api_key={SECRET}", "token": SECRET, "n": 1}}
    api = Recording({"model": "m"}, said, error=ValueError(f"refused: Authorization: Bearer {SECRET}"))
    [log] = run(Task(dataset=sums(1)), model=Model(api, name="mock/model"))
    [sample] = log.samples or []
    [event] = [event for event in sample.events if isinstance(event, ModelEvent)]
    assert event.error == "ValueError: refused: Authorization: Bearer [removed]"
    assert event.call is not None and event.call.error
    assert event.call.response == {"error": {"message": "refused, api_key=[removed]", "token": "[removed]", "n": 1}}
    assert sample.error is not None and "[removed]" in sample.error.message and "[removed]" in sample.error.traceback


@pytest.mark.parametrize("told", [True, False])
def test_errors_of_tools(run: Run, monkeypatch: pytest.MonkeyPatch, told: bool) -> None:
    monkeypatch.setenv("ACME_API_KEY", SECRET)

    @tool
    def lookup() -> Tool:
        async def execute() -> str:
            """Look it up."""
            raise (
                ToolError(f"password=swordfish with {SECRET}") if told else RuntimeError(f"password=swordfish {SECRET}")
            )

        return execute

    calls = iter([True, False])

    def reply(*_: Any) -> ModelOutput:
        output = ModelOutput.from_content("model", "ANSWER: 1")
        if next(calls):
            output.message.tool_calls = [ToolCall(id="1", function="lookup", arguments={"password": "the task's own"})]
            output.message.tool_calls[0].arguments = {}
        return output

    model = get_model("mock/model", custom_outputs=reply, memoize=False)
    [log] = run(Task(dataset=sums(1), solver=[use_tools(lookup()), generate()]), model=model)
    [event] = [event for event in (log.samples or [])[0].events if isinstance(event, ToolEvent)]
    assert event.error is not None
    # What a model is told may be about the task's own passwords; what nobody was told need not be kept so exactly.
    expected = "password=swordfish with [ACME_API_KEY]" if told else "RuntimeError: password=[removed] [ACME_API_KEY]"
    assert event.error.message == expected


def test_errors_of_samples(run: Run) -> None:
    @solver
    def fails() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            raise RuntimeError(f"GET https://u:{SECRET}@h/v1?key={SECRET}&n=1 with {{'password': '{SECRET}'}}")

        return solve

    [log] = run(Task(dataset=sums(1), solver=fails()), model=answers())
    assert log.error is not None
    assert "https://h/v1?key=[removed]&n=1" in log.error.message and "'password': '[removed]'" in log.error.traceback


def test_what_a_task_is_about_is_left_as_it_is(run: Run) -> None:
    from proctor.dataset import Sample

    question = "The password: swordfish1, api_key=abc123. What is the password?"

    dataset = [Sample(input=question, target="swordfish1", metadata={"password": "swordfish1"})]
    api = Recording(
        {"messages": [question], "tools": [{"password": {}}]}, {"text": "api_key=abc123"}, "password=swordfish1"
    )
    [log] = run(Task(dataset=dataset, scorer=match()), model=Model(api, name="mock/model"))
    [sample] = log.samples or []
    assert sample.input == question and sample.metadata == {"password": "swordfish1"}
    assert sample.output.completion == "password=swordfish1"
    [event] = [event for event in sample.events if isinstance(event, ModelEvent)]
    assert event.call is not None and event.call.request == {"messages": [question], "tools": [{"password": {}}]}
    assert event.call.response == {"text": "api_key=abc123"}

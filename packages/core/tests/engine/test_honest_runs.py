"""What a log must not hide, and what must not reach it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from engine_runs import answers, sums

from proctor import Task
from proctor.contracts import UsageError
from proctor.model import ModelOutput, get_model
from proctor.schema import EvalLog
from proctor.scorer import Score, Target, accuracy, match, scorer
from proctor.solver import Generate, Solver, TaskState, solver


def test_no_credential_reaches_the_log(run: Callable[..., list[EvalLog]]) -> None:
    from proctor.model import GenerateConfig

    secret = "sk-very-secret-1234"
    model = get_model(
        "mock/model",
        base_url=f"https://user:{secret}@example.org/v1",
        config=GenerateConfig(extra_headers={"X-Api-Key": secret, "X-Team": "blue"}),
        memoize=False,
    )
    [log] = run(
        Task(dataset=sums(1), scorer=match()),
        model=model,
        model_roles={"grader": {"model": "mock/judge", "extra_headers": {"Authorization": secret}}},
    )
    text = log.model_dump_json()
    assert secret not in text
    assert "blue" in text and "https://example.org/v1" in text


def test_replies_that_were_cut_short_are_counted_beside_the_score(run: Callable[..., list[EvalLog]]) -> None:
    def reply(input: Any, *_: Any) -> ModelOutput:
        reasons = {"1": "content_filter", "2": "model_length", "3": "max_tokens"}
        number = input[-1].text.split()[2]
        return ModelOutput.from_content("model", "", reasons.get(number, "stop"))  # type: ignore[arg-type]

    model = get_model("mock/model", custom_outputs=reply, memoize=False)
    [log] = run(Task(dataset=sums(4), scorer=match()), model=model)
    assert log.results is not None and log.results.metadata is not None
    outcomes = log.results.metadata["proctor"]["outcomes"]
    assert {kind for kind in outcomes if kind.startswith("stop:")} == {
        "stop:content_filter",
        "stop:model_length",
        "stop:max_tokens",
    }


def test_sys_exit_in_a_solver_is_its_sample_s_error(run: Callable[..., list[EvalLog]]) -> None:
    @solver
    def exits() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            if state.sample_id == 2:
                raise SystemExit(0)
            return await generate(state)

        return solve

    [log] = run(Task(dataset=sums(3), solver=exits(), scorer=match()), model=answers(), fail_on_error=False)
    assert log.status == "success" and log.results is not None
    assert log.results.completed_samples == 2


def test_a_credential_in_an_error_is_taken_out(
    run: Callable[..., list[EvalLog]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "sk-0123456789")

    @solver
    def tells() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            raise RuntimeError("refused: sk-0123456789")

        return solve

    [log] = run(Task(dataset=sums(1), solver=tells(), scorer=match()), model=answers())
    assert log.error is not None and "[ACME_API_KEY]" in log.error.message
    assert "sk-0123456789" not in log.model_dump_json()


def test_settings_that_do_not_exist_are_refused_wherever_they_stand(run: Callable[..., list[EvalLog]]) -> None:
    from proctor.model import GenerateConfig

    misspelt = GenerateConfig(temprature=0)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="did you mean 'temperature'"):
        run(Task(dataset=sums(1), scorer=match(), config=misspelt))
    with pytest.raises(UsageError, match="role 'grader'"):
        run(Task(dataset=sums(1)), model_roles={"grader": {"model": "mock/g", "temperatur": 0}})
    with pytest.raises(UsageError, match="--solver"):
        run(Task(dataset=sums(1)), solver_args={"x": 1})


def test_a_solver_from_a_file(run: Callable[..., list[EvalLog]], tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from proctor.solver import solver\n"
        "@solver\n"
        "def shout(word: str = 'hi'):\n"
        "    async def solve(state, generate):\n"
        "        state.output.completion = word\n"
        "        return state\n"
        "    return solve\n"
    )
    for spec in (str(file), f"{file}@shout"):
        [log] = run(Task(dataset=sums(1)), solver=spec, solver_args={"word": "hey"})
        assert log.samples is not None and log.samples[0].output.completion == "hey"
    with pytest.raises(UsageError, match="shout"):
        run(Task(dataset=sums(1)), solver=f"{file}@shoot")


def test_a_limit_inside_a_task_group_is_a_limit(run: Callable[..., list[EvalLog]]) -> None:
    @solver
    def grouped() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(generate, state)
            return state

        return solve

    [log] = run(Task(dataset=sums(1), solver=grouped(), scorer=match()), model=answers(), turn_limit=1)
    [sample] = log.samples or ()
    assert sample.error is None and sample.limit is not None and sample.limit.type == "turn"


def test_tokens_of_attempts_that_failed_are_counted(run: Callable[..., list[EvalLog]]) -> None:
    tries: list[int] = []

    @solver
    def second_time() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state = await generate(state)
            tries.append(1)
            if len(tries) < 2:
                raise RuntimeError("not yet")
            return state

        return solve

    [log] = run(Task(dataset=sums(1), solver=second_time(), scorer=match()), model=answers(), retry_on_error=1)
    [sample] = log.samples or ()
    last = sample.model_usage["mock/model"].total_tokens
    assert log.stats.model_usage["mock/model"].total_tokens == 2 * last


def test_the_task_s_own_connections_hold(run: Callable[..., list[EvalLog]]) -> None:
    from proctor.concurrency import gates
    from proctor.model import GenerateConfig

    seen: list[int | None] = []

    @solver
    def looks() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state = await generate(state)
            seen.extend(gate.limit for gate in gates() if gate.name == "mock/model")
            return state

        return solve

    run(Task(dataset=sums(1), solver=looks(), config=GenerateConfig(max_connections=50)), model=answers())
    assert seen == [50]


def test_a_unit_that_was_aborted_counts_its_outcomes_in_the_log(run: Callable[..., list[EvalLog]]) -> None:
    @solver
    def breaks() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            if state.sample_id == 3:
                raise ValueError("no")
            return await generate(state)

        return solve

    for format in ("eval", "json"):
        [log] = run(
            Task(dataset=sums(5), solver=breaks(), scorer=match(), metadata={"mine": 1}),
            model=answers(),
            max_samples=1,
            log_format=format,
        )
        assert log.status == "error" and log.results is None
        assert log.eval.metadata is not None and log.eval.metadata["mine"] == 1
        assert log.eval.metadata["proctor"]["unit"]
        assert log.eval.metadata["proctor"]["outcomes"] == {
            "total": 5,
            "completed": 2,
            "scored": 2,
            "error:ValueError": 1,
            "not_run": 2,
        }


def test_a_scorer_that_returns_nothing_is_a_reason(run: Callable[..., list[EvalLog]]) -> None:
    @scorer(metrics=[accuracy()])
    def silent() -> Any:
        async def score(state: TaskState, target: Target) -> Score | None:
            return None if state.sample_id == 2 else Score(value="C")

        return score

    [log] = run(Task(dataset=sums(3), scorer=[match(), silent()]), model=answers())
    assert log.results is not None and log.results.metadata is not None
    outcomes = log.results.metadata["proctor"]["outcomes"]
    assert outcomes == {"total": 3, "completed": 3, "unscored:no_score": 1}


def test_a_scorer_that_returns_no_score_object_is_told_so(run: Callable[..., list[EvalLog]]) -> None:
    @scorer(metrics=[accuracy()])
    def grade() -> Any:
        async def score(state: Any, target: Any) -> Any:
            return "C"

        return score

    [log] = run(Task(dataset=sums(1), scorer=grade(), name="odd"))
    assert log.error is not None
    assert "the scorer 'grade' returned 'C', which is no Score" in log.error.message

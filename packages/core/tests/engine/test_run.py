"""Whole runs with the mock model, on both back-ends, read back from the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from engine_runs import answers, sums

from proctor import Epochs, Task, eval, eval_async, task
from proctor.contracts import UsageError
from proctor.dataset import IterableDataset, MemoryDataset, Sample
from proctor.engine import exit_code
from proctor.log import read_eval_log, store, transcript
from proctor.model import get_model
from proctor.monitor import loop_watch
from proctor.schema import EvalLog
from proctor.scorer import Score, Target, accuracy, includes, match, mean, scorer, stderr
from proctor.solver import Generate, Solver, TaskState, generate, solver, system_message


@solver
def fails_on(*ids: int, with_error: type[Exception] = ValueError) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.sample_id in ids:
            raise with_error(f"no luck with {state.sample_id}")
        return await generate(state)

    return solve


def test_a_run_ends_with_a_score_and_every_sample_in_the_log(run: Callable[..., list[EvalLog]]) -> None:
    [log] = run(Task(dataset=sums(), scorer=match(), name="sums"), model=answers())
    assert (log.status, log.eval.task, log.eval.model) == ("success", "sums", "mock/model")
    assert log.results is not None and log.samples is not None
    assert log.results.total_samples == log.results.completed_samples == 4
    assert log.results.scores[0].metrics["accuracy"].value == 1.0
    assert log.results.scores[0].scored_samples == 4
    assert [sample.id for sample in log.samples] == [1, 2, 3, 4]
    first = log.samples[0]
    assert [message.role for message in first.messages] == ["user", "assistant"]
    assert first.scores is not None and first.scores["match"].value == "C"
    assert first.model_usage["mock/model"].total_tokens > 0
    assert log.stats.model_usage["mock/model"].total_tokens == sum(
        sample.model_usage["mock/model"].total_tokens for sample in log.samples
    )


def test_events_tell_the_story_in_order(run: Callable[..., list[EvalLog]]) -> None:
    [log] = run(
        Task(dataset=sums(1), solver=[system_message("Be brief."), generate()], scorer=match()), model=answers()
    )
    assert log.samples is not None
    spans = [event.name for event in log.samples[0].events if event.event == "span_begin"]
    assert spans == ["init", "solvers", "system_message", "generate", "scorers", "match"]
    kinds = [event.event for event in log.samples[0].events if not event.event.startswith("span")]
    assert kinds == ["sample_init", "model", "score"]
    model = next(event for event in log.samples[0].events if event.event == "model")
    assert [message.role for message in model.input] == ["system", "user"]
    assert model.pending is None


def test_tasks_cross_models_in_plan_order(run: Callable[..., list[EvalLog]]) -> None:
    @task
    def one() -> Task:
        return Task(dataset=sums(2), scorer=includes())

    @task
    def two() -> Task:
        return Task(dataset=sums(3), scorer=includes())

    logs = run([one, two], model="mock/a,mock/b", max_tasks=3)
    assert [(log.eval.task, log.eval.model) for log in logs] == [
        ("one", "mock/a"),
        ("one", "mock/b"),
        ("two", "mock/a"),
        ("two", "mock/b"),
    ]
    assert len({log.eval.run_id for log in logs}) == 1
    assert len({log.location for log in logs}) == 4


def test_epochs_run_together_and_are_reduced(run: Callable[..., list[EvalLog]]) -> None:
    order: list[tuple[Any, int]] = []

    @solver
    def note() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            order.append((state.sample_id, state.epoch))
            return await generate(state)

        return solve

    [log] = run(
        Task(dataset=sums(2), solver=note(), scorer=match(), epochs=Epochs(3, ["mean", "pass_at_2"])),
        model=answers(),
        max_samples=1,
    )
    assert order == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    assert log.results is not None
    assert [score.reducer for score in log.results.scores] == ["mean", "pass_at_2"]
    assert log.eval.config.epochs == 3
    assert log.reductions is not None and len(log.reductions[0].samples) == 2


def test_selection_and_limit(run: Callable[..., list[EvalLog]]) -> None:
    [log] = run(Task(dataset=sums(9), scorer=match()), model=answers(), limit=(2, 5))
    assert [sample.id for sample in log.samples or ()] == [3, 4, 5]
    assert (log.eval.dataset.samples, log.eval.dataset.sample_ids) == (9, [3, 4, 5])
    [log] = run(Task(dataset=sums(9), scorer=match()), model=answers(), sample_id=[7, 2])
    assert sorted(str(sample.id) for sample in log.samples or ()) == ["2", "7"]


def test_a_generator_is_pulled_as_it_is_needed(run: Callable[..., list[EvalLog]]) -> None:
    alive = most = 0

    def make() -> Iterator[Sample]:
        nonlocal alive, most
        for n in range(1, 51):
            alive += 1
            most = max(most, alive)
            yield Sample(input=f"What is {n} ?", target=str(n))

    @solver
    def count_down() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            nonlocal alive
            state = await generate(state)
            alive -= 1
            return state

        return solve

    [log] = run(
        Task(dataset=IterableDataset(make), solver=count_down(), scorer=match()), model=answers(), max_samples=4
    )
    assert log.results is not None
    assert (log.results.total_samples, log.results.scores[0].metrics["accuracy"].value) == (50, 1.0)
    assert most <= 6


def test_a_dataset_without_a_sample_ends_with_an_error(run: Callable[..., list[EvalLog]]) -> None:
    for length in (0, None):  # that which says so made a run that never ended
        dataset = IterableDataset(lambda: iter(()), length=length)
        [log] = run(Task(dataset=dataset, scorer=match(), name=f"none_{length}"))
        assert log.status == "error" and log.error is not None
        assert "gave no sample" in log.error.message


def test_a_list_without_a_task_and_ids_of_no_sample_are_refused(run: Callable[..., list[EvalLog]]) -> None:
    with pytest.raises(UsageError, match="no task was given"):
        run([])
    for none in ([], "", [" "]):
        with pytest.raises(UsageError, match="names no sample"):
            run(Task(dataset=sums(), name="sums"), sample_id=none)


def test_an_argument_that_only_some_tasks_take_names_those(run: Callable[..., list[EvalLog]]) -> None:
    @task
    def small(k: int = 1) -> Task:
        return Task(dataset=sums(k), scorer=match())

    @task
    def plain() -> Task:
        return Task(dataset=sums(1), scorer=match())

    with pytest.raises(UsageError, match=r"-T k=.* is taken by 'small' and not by 'plain'"):
        run([small, plain], task_args={"k": 2})
    with pytest.raises(UsageError, match=r"'small' has no argument 'kk'.*did you mean 'k'"):
        run([small, plain], task_args={"kk": 2})
    [log] = run([small], task_args={"k": 2}, model=answers())
    assert log.results is not None and log.results.total_samples == 2


def test_a_solver_without_its_parentheses_is_refused_before_the_run(run: Callable[..., list[EvalLog]]) -> None:
    with pytest.raises(UsageError, match=r"given for this run: generate is no solver.* write generate\(\)"):
        run(Task(dataset=sums(), name="sums"), solver=generate)


def test_the_first_error_fails_the_unit_and_keeps_what_there_was(run: Callable[..., list[EvalLog]]) -> None:
    [log] = run(Task(dataset=sums(9), solver=fails_on(2), scorer=match()), model=answers(), max_samples=1)
    assert log.status == "error"
    assert log.error is not None and "no luck with 2" in log.error.message
    assert [sample.id for sample in log.samples or ()] == [1, 2]
    failed = (log.samples or [])[1]
    assert failed.error is not None and "fails_on" not in failed.error.message
    assert failed.scores == {}
    assert log.results is None


def test_tolerated_errors_are_counted_and_never_in_the_denominator_unseen(run: Callable[..., list[EvalLog]]) -> None:
    [log] = run(Task(dataset=sums(4), solver=fails_on(2, 3), scorer=match()), model=answers(), fail_on_error=False)
    assert log.status == "success" and log.results is not None
    assert (log.results.total_samples, log.results.completed_samples) == (4, 2)
    assert log.results.scores[0].scored_samples == 2
    assert log.results.metadata is not None
    assert log.results.metadata["proctor"]["outcomes"] == {"total": 4, "completed": 2, "error:ValueError": 2}


def test_a_share_of_errors_and_continue_on_fail(run: Callable[..., list[EvalLog]]) -> None:
    def failing() -> Task:
        return Task(dataset=sums(4), solver=fails_on(1, 2, 3), scorer=match())

    [log] = run(failing(), model=answers(), fail_on_error=0.8)
    assert log.status == "success"
    [log] = run(failing(), model=answers(), fail_on_error=0.5, continue_on_fail=True)
    assert log.status == "error" and log.error is None and log.results is not None
    assert len(log.samples or ()) == 4


def test_a_failed_sample_is_tried_again(run: Callable[..., list[EvalLog]]) -> None:
    tries = 0

    @solver
    def third_time_lucky() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            nonlocal tries
            tries += 1
            state = await generate(state)
            if tries < 3:
                raise RuntimeError("not yet")
            return state

        return solve

    [log] = run(Task(dataset=sums(1), solver=third_time_lucky(), scorer=match()), model=answers(), retry_on_error=5)
    assert log.status == "success" and log.samples is not None
    retries = log.samples[0].error_retries
    assert retries is not None and len(retries) == 2
    assert "not yet" in retries[0].message


def test_a_broken_scorer_is_the_sample_s_error(run: Callable[..., list[EvalLog]]) -> None:
    @scorer(metrics=[accuracy()])
    def broken() -> Any:
        async def score(state: TaskState, target: Target) -> Score:
            raise KeyError("lost")

        return score

    [log] = run(Task(dataset=sums(2), scorer=[match(), broken()]), model=answers(), fail_on_error=False)
    assert all(sample.error is not None and sample.scores == {} for sample in log.samples or ())
    # when nothing came through, something broke, whatever may be tolerated
    assert log.status == "error" and exit_code([log]) == 3


def test_limits_end_a_sample_in_an_orderly_way_and_it_is_scored(run: Callable[..., list[EvalLog]]) -> None:
    @solver
    def talkative() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            while True:
                state = await generate(state)
                state.messages.append(state.messages[0].model_copy(update={"id": None}))

        return solve

    @solver
    def stuck() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state = await generate(state)
            await anyio.sleep_forever()
            return state

        return solve

    cases: list[tuple[Solver, dict[str, Any], str]] = [
        (talkative(), {"message_limit": 5}, "message"),
        (talkative(), {"token_limit": 40}, "token"),
        (talkative(), {"turn_limit": 2}, "turn"),
        (stuck(), {"time_limit": 0.05}, "time"),
        (stuck(), {"working_limit": 0.05}, "working"),
    ]
    for solving, limit, kind in cases:
        [log] = run(Task(dataset=sums(1), solver=solving, scorer=includes()), model=answers(), **limit)
        [sample] = log.samples or ()
        assert log.status == "success"
        assert sample.limit is not None and sample.limit.type == kind
        assert sample.error is None
        assert sample.scores is not None and sample.scores["includes"].value == "C"
        assert any(event.event == "sample_limit" for event in sample.events)
        assert log.results is not None and log.results.metadata is not None
        assert log.results.metadata["proctor"]["outcomes"][f"limit:{kind}"] == 1


def test_roles_graders_and_usage_by_role(run: Callable[..., list[EvalLog]]) -> None:
    @scorer(metrics=[mean(), stderr()])
    def graded() -> Any:
        async def score(state: TaskState, target: Target) -> Score:
            output = await get_model(role="grader").generate("Grade this")
            return Score(value=1.0 if "Default" in output.completion else 0.0)

        return score

    [log] = run(Task(dataset=sums(2), scorer=graded()), model=answers(), model_roles={"grader": "mock/judge"})
    assert log.results is not None and log.results.scores[0].metrics["mean"].value == 1.0
    assert log.stats.role_usage["grader"].total_tokens > 0
    assert set(log.stats.model_usage) == {"mock/model", "mock/judge"}
    assert log.eval.model_roles is not None and "grader" in log.eval.model_roles


def test_settings_merge_from_task_to_run_to_call(run: Callable[..., list[EvalLog]]) -> None:
    from proctor.model import GenerateConfig

    seen: list[tuple[Any, Any, Any]] = []

    def reply(input: Any, tools: Any, tool_choice: Any, config: GenerateConfig) -> str:
        seen.append((config.temperature, config.max_tokens, config.seed))
        return "x"

    model = get_model("mock/model", custom_outputs=reply, memoize=False, config=GenerateConfig(temperature=0.1, seed=1))
    run(
        Task(
            dataset=sums(1),
            solver=generate(max_tokens=9),
            config=GenerateConfig(temperature=0.5, max_tokens=5),
            scorer=match(),
        ),
        model=model,
        temperature=0.9,
    )
    assert seen == [(0.9, 9, 1)]


def test_the_store_and_the_transcript_belong_to_the_sample(run: Callable[..., list[EvalLog]]) -> None:
    @solver
    def remembers() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            assert len(store()) == 0
            store().set("id", state.sample_id)
            transcript().info({"seen": state.sample_id}, source="test")
            return await generate(state)

        return solve

    [log] = run(Task(dataset=sums(5), solver=remembers(), scorer=match()), model=answers())
    assert [sample.store for sample in log.samples or ()] == [{"id": n} for n in range(1, 6)]
    for sample in log.samples or ():
        [info] = [event for event in sample.events if event.event == "info"]
        assert info.data == {"seen": sample.id}


def test_cleanup_sees_every_sample_whatever_happened(run: Callable[..., list[EvalLog]]) -> None:
    cleaned: list[Any] = []

    async def cleanup(state: TaskState) -> None:
        cleaned.append(state.sample_id)

    run(
        Task(dataset=sums(3), solver=fails_on(2), scorer=match(), cleanup=cleanup),
        model=answers(),
        fail_on_error=False,
    )
    assert sorted(cleaned) == [1, 2, 3]


def test_one_unit_s_failure_leaves_the_others_alone(run: Callable[..., list[EvalLog]]) -> None:
    bad = Task(dataset=sums(3), solver=fails_on(1), scorer=match(), name="bad")
    good = Task(dataset=sums(3), scorer=match(), name="good")
    logs = run([bad, good], model=answers(), max_tasks=2)
    assert [log.status for log in logs] == ["error", "success"]


def test_a_record_that_can_t_be_read_is_named(run: Callable[..., list[EvalLog]], tmp_path: Path) -> None:
    from proctor.dataset import json_dataset

    lines = [json.dumps({"input": f"What is {n} ?", "target": str(n)}) for n in range(1, 4)]
    lines[1] = json.dumps({"input": {"not": "text"}, "target": "2"})
    (tmp_path / "data.jsonl").write_text("\n".join(lines))
    with pytest.raises(UsageError, match=r"data\.jsonl"):
        run(Task(dataset=json_dataset(str(tmp_path / "data.jsonl")), scorer=match()), model=answers())


def test_what_is_wrong_before_the_first_request_costs_none(run: Callable[..., list[EvalLog]], tmp_path: Path) -> None:
    asked: list[Any] = []
    model = get_model("mock/model", custom_outputs=lambda *a: asked.append(a) or "x", memoize=False)
    (tmp_path / "file").write_text("")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"limit": 0}, "limit"),
        ({"epochs": 0}, "epochs"),
        ({"sample_id": ["77"]}, "77"),
        ({"log_dir": str(tmp_path / "file" / "x")}, "log"),
        ({"display": "hologram"}, "hologram"),
        ({"observers": ["nobody"]}, "nobody"),
        ({"sandbox": "nowhere"}, "nowhere"),
        ({"solver": "nothing"}, "nothing"),
        ({"epochs_reducer": "meen"}, "meen"),
        ({"tempreture": 1}, "temperature"),
    ]
    for options, word in wrong:
        with pytest.raises((UsageError, ValueError), match=word):
            run(Task(dataset=sums(2), scorer=match()), model=model, **options)
    for name, word in (("nobody/x", "nobody"), ("plain", "provider/model"), ("mock/model", "")):
        if word:
            with pytest.raises(UsageError, match=word):
                run(Task(dataset=sums(2), scorer=match()), model=name)
    with pytest.raises(UsageError, match="planned twice"):
        run(Task(dataset=sums(2), scorer=match()), model=[model, model])
    with pytest.raises(UsageError, match="no samples"):
        run(Task(dataset=MemoryDataset([]), scorer=match()), model=model)
    assert asked == []


def test_a_sweep_of_one_task_makes_a_log_each(run: Callable[..., list[EvalLog]]) -> None:
    from proctor.model import GenerateConfig

    @task
    def swept(temperature: float) -> Task:
        return Task(dataset=sums(2), scorer=match(), config=GenerateConfig(temperature=temperature))

    logs = run([swept(temperature=t / 10) for t in range(3)], model=answers())
    assert [log.eval.task_args["temperature"] for log in logs] == [0.0, 0.1, 0.2]
    assert len({log.eval.metadata["proctor"]["unit"] for log in logs if log.eval.metadata}) == 3


def test_no_scoring_and_no_scorer(run: Callable[..., list[EvalLog]]) -> None:
    for log in run(Task(dataset=sums(2), scorer=match()), model=answers(), score=False) + run(
        Task(dataset=sums(2)), model=answers()
    ):
        assert log.status == "success" and log.results is not None
        assert log.results.scores == []
        assert all(sample.scores is None for sample in log.samples or ())


@pytest.mark.anyio
async def test_eval_async_runs_in_the_loop_that_is_there(tmp_path: Path) -> None:
    [log] = await eval_async(
        Task(dataset=sums(2), scorer=match()), model="mock/model", display="none", log_dir=str(tmp_path)
    )
    assert log.status == "success"
    with pytest.raises(UsageError, match="await eval_async"):
        eval(Task(), model="mock/model", display="none", log_dir=str(tmp_path))


def test_the_log_is_where_it_says(run: Callable[..., list[EvalLog]], tmp_path: Path) -> None:
    for format in ("eval", "json"):
        [log] = run(Task(dataset=sums(2), scorer=match()), model=answers(), log_format=format)
        assert log.location.endswith(f".{format}")
        assert read_eval_log(log.location, header_only=True).status == "success"


@pytest.mark.parametrize("measure", ["backlog", "backlog_bytes"])
def test_samples_wait_while_the_log_is_behind(
    run: Callable[..., list[EvalLog]], monkeypatch: pytest.MonkeyPatch, measure: str
) -> None:
    from proctor.log import LogWriter

    behind = [1 << 40] * 3
    monkeypatch.setattr(LogWriter, measure, property(lambda self: behind.pop() if behind else 0))
    [log] = run(Task(dataset=sums(2), scorer=match()), model=answers(), max_samples=1)
    assert log.status == "success" and behind == []


@pytest.mark.anyio
async def test_nothing_watches_the_loop_of_a_caller_once_the_run_is_over(tmp_path: Path) -> None:
    [log] = await eval_async(Task(dataset=sums(1)), model=answers(), log_dir=str(tmp_path), display="none")
    assert log.status == "success"
    assert loop_watch() is None, "it beats no more, so each later time-out would be called a stall"

"""Scoring a log anew: as a run would have scored it, without asking the evaluated model anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_runs import answers, sums

from proctor import Task, score, score_async
from proctor.cli import main
from proctor.cli._score import _Progress, score_command
from proctor.contracts import LogBusyError, UsageError
from proctor.dataset import Sample
from proctor.log import EvalLog, TagsEdit, edit_eval_log, read_eval_log, read_eval_log_sample, write_eval_log
from proctor.model import ModelOutput, get_model
from proctor.schema import EvalResults, option_table, score_keys
from proctor.scorer import Score, Scorer, accuracy, choice, exact, f1, includes, match, model_graded_qa, scorer, stderr
from proctor.solver import Generate, Solver, Target, TaskState, generate, multiple_choice, solver

Run = Callable[..., list[EvalLog]]


@solver
def failing(*ids: int) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.sample_id in ids:
            raise OSError("gone")
        return await generate(state)

    return solve


@scorer(metrics=[accuracy(), stderr()])
def fragile(broken: int = 2, by: type[BaseException] = ValueError) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        if state.sample_id == broken:
            raise by("odd answer")
        return Score(value="C")

    return score


def _results(log: EvalLog) -> EvalResults:
    assert log.results is not None
    return log.results


@pytest.fixture(params=["eval", "json"])
def made(request: pytest.FixtureRequest, run: Run) -> EvalLog:
    """Four samples, two epochs, the fourth answered wrongly."""
    task = Task(dataset=sums(4), scorer=includes(), epochs=2, name="sums")
    [log] = run(task, model=answers(**{"4": "no idea"}), log_format=request.param)
    return log


def test_the_log_that_a_run_returned_is_scored_where_it_lies(made: EvalLog) -> None:
    scored = score(made, includes())
    assert scored.location.removesuffix(Path(made.location).suffix) == f"{Path(made.location).with_suffix('')}-scored"

    with pytest.raises(UsageError, match="made in memory"):
        score(made.model_copy(update={"location": ""}), includes())


def test_a_log_is_scored_as_a_run_would_have_scored_it(made: EvalLog, run: Run, tmp_path: Path) -> None:
    # given a run with two scorers
    task = Task(dataset=sums(4), scorer=[match(), f1()], epochs=2, name="sums")
    [wanted] = run(task, model=answers(**{"4": "no idea"}))
    before = Path(made.location).read_bytes()
    # when a log of the same answers is scored by these
    header = score(made.location, [match(), f1()], action="overwrite")
    # then results, reductions and scores are the same, in a log of its own
    assert Path(made.location).read_bytes() == before
    assert header.location == made.location.replace(Path(made.location).suffix, f"-scored{Path(made.location).suffix}")
    read = read_eval_log(header.location)
    assert _results(read) == _results(wanted)
    assert read.eval.scorers == wanted.eval.scorers
    assert read.samples is not None and wanted.samples is not None
    assert [one.scores for one in read.samples] == [one.scores for one in wanted.samples]
    assert read.reductions is not None and wanted.reductions is not None
    for ours, theirs in zip(read.reductions, wanted.reductions, strict=True):
        assert (ours.scorer, sorted(map(str, ours.samples))) == (theirs.scorer, sorted(map(str, theirs.samples)))


def test_new_scores_stand_beside_those_that_are_there(made: EvalLog) -> None:
    former = _results(made).scores
    header = score(made.location, ["exact", "includes"], overwrite=True)
    read = read_eval_log(made.location)
    assert [row.scorer for row in _results(read).scores] == ["includes", "exact", "includes1"]
    assert _results(read).scores[:1] == former
    assert _results(read).headline == _results(made).headline
    assert [one.name for one in read.eval.scorers or ()] == ["includes", "exact", "includes1"]
    assert [one.scorer for one in read.reductions or ()] == ["includes", "exact", "includes1"]
    sample = read_eval_log_sample(made.location, 1, 1)
    assert list(sample.scores or ()) == ["includes", "exact", "includes1"]
    assert [event.scorer for event in sample.events if event.event == "score"] == ["includes", "exact", "includes1"]
    assert header.etag == read.etag


def test_samples_that_failed_stay_without_a_score(run: Run) -> None:
    task = Task(dataset=sums(4), solver=failing(2, 3), scorer=includes(), fail_on_error=False, name="sums")
    [log] = run(task, model=answers())
    header = score(log.location, exact())
    assert _results(header).completed_samples == 2
    assert [row.scored_samples for row in _results(header).scores] == [2, 2]
    own = (_results(header).metadata or {})["proctor"]
    assert own["partial"] == {"includes": {"error:OSError": 2}, "exact": {"error:OSError": 2}}
    assert read_eval_log_sample(header.location, 2).scores == {}


def test_a_sample_whose_scorer_failed_in_the_run_gets_its_score(run: Run) -> None:
    # given a run in which one sample's solver failed, and another's scorer, after one that did not
    scorers = [exact(), fragile(3)]
    task = Task(dataset=sums(4), solver=failing(2), scorer=scorers, fail_on_error=False, name="sums")
    [log] = run(task, model=answers())
    assert (_results(log).metadata or {})["proctor"]["outcomes"]["error:ValueError"] == 1
    # when it is scored by scorers that work
    header = score(log.location, [exact(), fragile(0)], action="overwrite")
    # then the second has a score, and its transcript still says what happened
    assert (_results(header).metadata or {})["proctor"]["outcomes"] == {"total": 4, "completed": 3, "error:OSError": 1}
    assert [row.scored_samples for row in _results(header).scores] == [3, 3]
    judged = read_eval_log_sample(header.location, 3)
    assert judged.error is None and list(judged.scores or ()) == ["exact", "fragile"]
    assert "error" in [event.event for event in judged.events]
    assert read_eval_log_sample(header.location, 2).error is not None


def test_a_sample_whose_cleanup_failed_keeps_its_error(run: Run) -> None:
    async def broken(state: TaskState) -> None:
        raise OSError("gone")

    [log] = run(
        Task(dataset=sums(1), scorer=exact(), cleanup=broken, fail_on_error=False, name="sums"), model=answers()
    )
    header = score(log.location, exact(), action="overwrite")
    assert read_eval_log_sample(header.location, 1).error is not None


@pytest.mark.parametrize("by", [ValueError, SystemExit])
def test_a_scorer_that_raises_leaves_its_sample_unscored(made: EvalLog, by: type[BaseException]) -> None:
    header = score(made.location, fragile(by=by), action="overwrite", fail_on_error=False)
    [row] = _results(header).scores
    assert (row.scored_samples, row.unscored_samples) == (3, 1)
    assert (_results(header).metadata or {})["proctor"]["partial"] == {"fragile": {"unscored:scoring_failed": 2}}
    failed = (read_eval_log_sample(header.location, 2).scores or {})["fragile"]
    assert (failed.reason, failed.explanation) == ("scoring_failed", f"{by.__name__}('odd answer')")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_model_grades_and_its_tokens_are_counted(made: EvalLog, backend: str) -> None:
    grader = get_model("mock/grader", custom_outputs=lambda *_: ModelOutput.from_content("g", "GRADE: C"))
    header = score(
        made.location,
        model_graded_qa(),
        action="overwrite",
        model_roles={"grader": grader},
        async_backend=backend,
        max_samples=2,
    )
    assert _results(header).scores[0].metrics["accuracy"].value == 1.0
    sample = read_eval_log_sample(header.location, 4, 2)
    assert [event.event for event in sample.events][-6:] == [
        *("span_begin", "span_begin"),
        *("model", "score"),
        *("span_end", "span_end"),
    ]
    used = [one.role_usage["grader"].total_tokens for one in read_eval_log(header.location).samples or ()]
    assert all(used) and header.stats.role_usage["grader"].total_tokens == sum(used)
    assert header.stats.model_usage["mock/model"] == made.stats.model_usage["mock/model"]


def test_the_scorers_of_the_log_take_the_place_of_their_own_scores_when_none_is_named(made: EvalLog) -> None:
    header = score(made.location)
    assert _results(header) == _results(made)
    assert list(read_eval_log_sample(header.location, 1, 1).scores or ()) == ["includes"]
    # where the old ones would be lost, that must be said
    before = Path(made.location).read_bytes()
    assert "action='overwrite'" in _refused(made.location, overwrite=True)
    assert "action='overwrite'" in _refused(made.location, overwrite=True, output=made.location)
    assert Path(made.location).read_bytes() == before
    both = score(made.location, action="append", overwrite=True)
    assert [row.scorer for row in _results(both).scores] == ["includes", "includes1"]
    again = score(made.location, action="overwrite", overwrite=True)
    assert _results(again) == _results(both)


def test_a_scorer_whose_name_ends_in_a_digit_is_found_again_where_it_was_appended(run: Run) -> None:
    [log] = run(Task(dataset=sums(4), scorer=f1(), name="sums"), model=answers())
    both = score(log.location, action="append", overwrite=True)
    assert [row.scorer for row in _results(both).scores] == ["f1", "f11"]
    assert _results(score(both.location)) == _results(both)


def test_the_metrics_of_the_task_are_those_of_its_log_scored_again(run: Run) -> None:
    task = Task(dataset=sums(4), scorer=includes(), metrics=[stderr(), accuracy()], name="sums")
    [log] = run(task, model=answers())
    assert _results(score(log.location)) == _results(log)
    log.eval.metrics = [{"name": "nobodys", "options": {}}]
    write_eval_log(log, if_match="*")
    assert "there is no nobodys" in _refused(log.location, output="elsewhere.eval")


def test_the_command_says_that_the_scores_are_new_ones(made: EvalLog, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", made.location]) == 0
    assert "the old ones stand in" in " ".join(capsys.readouterr().out.split())
    assert main(["score", made.location, "--overwrite"]) == 2
    assert "--action overwrite" in capsys.readouterr().err
    assert main(["score", made.location, "--action", "overwrite", "--overwrite"]) == 0
    assert "the old ones" not in capsys.readouterr().out


def test_a_multiple_choice_answer_is_read_again(run: Run) -> None:
    samples = [Sample(input="Which?", choices=["x", "y"], target=target) for target in ("A", "B")]
    model = get_model("mock/m", custom_outputs=lambda *_: ModelOutput.from_content("m", "ANSWER: B"))
    [log] = run(Task(dataset=samples, solver=multiple_choice(), scorer=choice(), name="pick"), model=model)
    header = score(log.location, choice(), action="overwrite")
    assert _results(header) == _results(log)


def test_an_edit_waits_while_a_log_is_scored_in_its_place(made: EvalLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.log._edit._HOLDS", 1)
    refused: list[str] = []

    @scorer(metrics=[accuracy()])
    def editing() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            try:
                edit_eval_log(made.location, [TagsEdit(tags_add=["x"])])
            except LogBusyError as error:
                refused.append(str(error))
            return Score(value="C")

        return score

    score(made.location, editing(), overwrite=True)
    assert len(refused) == 8 and "in use" in refused[0]
    assert read_eval_log(made.location).tags == []


@pytest.mark.anyio
async def test_it_works_in_a_loop_that_runs(made: EvalLog) -> None:
    header = await score_async(made.location, exact())
    assert len(_results(header).scores) == 2
    assert "score_async" in _refused(made.location, scorer="exact")


def _refused(log: str, **arguments: Any) -> str:
    with pytest.raises(UsageError) as found:
        score(log, **arguments)
    return str(found.value)


def test_what_can_not_be_scored_is_refused_before_anything_is_sent(made: EvalLog, run: Run, tmp_path: Path) -> None:
    assert "no log at" in _refused("nowhere.eval", scorer="exact")
    assert "--scorer nobody" in _refused(made.location, scorer="nobody")
    assert "limit would do nothing" in _refused(made.location, scorer="exact", limit=3)
    assert "name it with --scorer" in _refused(made.location, scorer_args={"a": 1})
    there = tmp_path / "there.eval"
    there.write_bytes(b"mine")
    assert "is there already" in _refused(made.location, scorer="exact", output=there)
    # What was asked for is looked at before what is in its way.
    assert "no scorer is named 'nope'" in _refused(made.location, scorer="nope", output=there)
    assert there.read_bytes() == b"mine"
    [bare] = run(Task(dataset=sums(1), solver=generate(), name="bare"), model=answers(), log_samples=False)
    assert "holds no samples" in _refused(bare.location, scorer="exact")


def test_long_work_says_every_few_seconds_how_far_it_is(made: EvalLog, capsys: pytest.CaptureFixture[str]) -> None:
    # given a clock that goes on by 3 s with each sample
    times = iter(range(0, 100, 3))
    score(made.location, exact(), tell=_Progress(lambda: next(times)))
    assert capsys.readouterr().err.splitlines() == ["scored 2/8 25%", "scored 4/8 50%", "scored 6/8 75%"]


def test_the_options_that_bear_on_scoring_are_options_of_an_evaluation() -> None:
    own = {
        "log",
        "scorer",
        "scorer_args",
        "metric",
        "action",
        "output",
        "overwrite",
        "model",
        "fresh",
        "as_json",
        "env",
    }
    assert score_keys() <= option_table().keys()
    assert {param.name for param in score_command.params} == score_keys() | own


def test_the_command_says_by_its_exit_code_that_a_scorer_failed(
    made: EvalLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "from proctor.scorer import Score, accuracy, scorer\n"
        "@scorer(metrics=[accuracy()])\n"
        "def odd(broken=0):\n"
        "    async def score(state, target):\n"
        "        return Score(value=1 / (state.sample_id - broken))\n"
        "    return score\n"
    )
    arguments = ["score", made.location, "--scorer", f"{file}@odd", "-S", "broken=2", "--action", "overwrite", "--json"]
    assert main([*arguments, "--continue-on-fail"]) == 3
    [said] = json.loads(capsys.readouterr().out)["logs"]
    assert said["metrics"][0]["missing"] == {"unscored:scoring_failed": 2} and said["partial"]
    assert main([*arguments, "--overwrite", "--no-fail-on-error"]) == 0
    assert main([*arguments, "--overwrite"]) == 1
    assert main([*arguments[:-1], "--output-file", str(tmp_path / "more.eval"), "-S", "broken=9"]) == 0
    assert main(["score", made.location, "--metric", "nobodys"]) == 2

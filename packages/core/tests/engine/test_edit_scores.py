"""Invalidated samples and edited scores: history is kept, and metrics, reductions and outcomes follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_runs import answers, sums

from proctor import Task, eval
from proctor.contracts import UsageError
from proctor.engine import edit_score, invalidate_samples, recompute_metrics, uninvalidate_samples
from proctor.log import EvalLog, Provenance, ScoreEdit, read_eval_log, read_eval_log_sample, write_eval_log
from proctor.model import get_model
from proctor.schema import EvalResults
from proctor.scorer import Metric, accuracy, includes, metric

WHO = Provenance(author="ann", timestamp="2026-11-29T12:00:00Z", reason="a broken prompt")


@pytest.fixture(params=["eval", "json"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Four samples, two epochs; the fourth is answered wrongly."""
    task = Task(dataset=sums(4), scorer=includes(), epochs=2, name="sums")
    model = answers(**{"4": "no idea"})
    [made] = eval(task, model=model, display="none", log_dir=str(tmp_path), log_format=request.param)
    return made.location


def _results(log: EvalLog) -> EvalResults:
    assert log.results is not None
    return log.results


def _own(log: EvalLog) -> Any:
    return (_results(log).metadata or {})["proctor"]


def test_invalidated_samples_do_not_count_until_they_are_valid_again(log: str) -> None:
    before = read_eval_log(log)
    assert _results(before).scores[0].metrics["accuracy"].value == 0.75
    # when a sample is invalidated, in all epochs
    made = invalidate_samples(log, [(4, None)], WHO)
    # then metrics, reductions and outcomes are without it, and it says who and why
    read = read_eval_log(log)
    assert read.invalidated and made.invalidated
    [score] = _results(read).scores
    assert (score.metrics["accuracy"].value, score.scored_samples) == (1.0, 3)
    assert _own(read)["outcomes"]["invalidated"] == 2
    assert _own(read)["partial"] == {"includes": {"invalidated": 2}}
    assert (_results(read).total_samples, _results(read).completed_samples) == (8, 6)
    assert read.reductions is not None
    assert [one.sample_id for one in read.reductions[0].samples] == [1, 2, 3]
    assert read_eval_log_sample(log, 4, 2).invalidation == WHO
    assert read_eval_log_sample(log, 1, 1).invalidation is None
    # when somebody else says so again, the first word stands; and when it is taken back, all is as it was
    invalidate_samples(log, [(4, 1)], Provenance(author="bob", timestamp="2026-11-30T12:00:00Z"))
    assert read_eval_log_sample(log, 4, 1).invalidation == WHO
    uninvalidate_samples(log)
    after = read_eval_log(log)
    after.etag = before.etag
    after.samples, before.samples = None, None
    assert after.reductions is not None and before.reductions is not None
    for some in (after.reductions[0], before.reductions[0]):
        some.samples.sort(key=lambda one: str(one.sample_id))
    assert after == before


def test_a_score_is_edited_and_what_it_was_stays(log: str) -> None:
    # when a judge of flesh corrects a score, twice
    edit_score(log, 4, "includes", ScoreEdit(value="C", explanation="it is right"), provenance=WHO)
    edit_score(log, 4, "includes", ScoreEdit(answer="4"), provenance=WHO)
    # then its history begins with the original, and the metrics follow
    score = (read_eval_log_sample(log, 4, 1).scores or {})["includes"]
    assert (score.value, score.answer, score.explanation) == ("C", "4", "it is right")
    assert [(one.value, one.provenance) for one in score.history] == [("I", None), ("C", WHO), ("UNCHANGED", WHO)]
    read = read_eval_log(log)
    assert _results(read).scores[0].metrics["accuracy"].value == (3 + 0.5) / 4
    assert [event.event for event in read_eval_log_sample(log, 4, 1).events][-2:] == ["score_edit", "score_edit"]


def test_a_new_score_needs_a_value(log: str) -> None:
    with pytest.raises(UsageError, match=r"no score 'mood' \(it has: includes\)"):
        edit_score(log, 1, "mood", ScoreEdit(answer="good"))
    edit_score(log, 1, "mood", ScoreEdit(value=0.5), provenance=WHO)
    assert (read_eval_log_sample(log, 1, 1).scores or {})["mood"].value == 0.5


def test_a_value_that_the_metrics_do_not_fit_is_refused_and_nothing_changes(log: str) -> None:
    before = Path(log).read_bytes()
    with pytest.raises(UsageError, match="the score 'includes' of sample 1 is 'C': give one value"):
        edit_score(log, 1, "includes", ScoreEdit(value={"a": 1}))
    assert Path(log).read_bytes() == before

    edit_score(log, 1, "moods", ScoreEdit(value={"good": 1}), provenance=WHO)
    with pytest.raises(UsageError, match="a value of each key: give a dict"):
        edit_score(log, 1, "moods", ScoreEdit(value=0.5))
    edit_score(log, 1, "moods", ScoreEdit(value=float("nan")), provenance=WHO)
    edit_score(log, 1, "moods", ScoreEdit(value=0.5), provenance=WHO)


def test_a_sample_that_is_not_there_is_named_and_nothing_changes(log: str) -> None:
    before = Path(log).read_bytes()
    with pytest.raises(UsageError, match=r"has no sample 9;"):
        invalidate_samples(log, [(1, None), (9, None)])
    with pytest.raises(UsageError, match=r"has no sample 1 of epoch 3"):
        edit_score(log, 1, "includes", ScoreEdit(value="C"), epoch=3)
    assert Path(log).read_bytes() == before


def test_metrics_are_computed_anew_from_the_scores(log: str) -> None:
    read = read_eval_log(log)
    _results(read).scores[0].metrics["accuracy"].value = 99.0
    write_eval_log(read)
    made = recompute_metrics(log)
    assert _results(made).scores[0].metrics["accuracy"].value == 0.75
    assert _results(read_eval_log(log)) == _results(made)


def test_metrics_whose_code_is_not_at_hand_stay_and_are_called_stale(tmp_path: Path) -> None:
    @metric(name="gone_metric")
    def own() -> Metric:
        return lambda scores: float(len(scores))

    task = Task(dataset=sums(2), scorer=includes(), metrics=[accuracy(), own()], name="sums")
    [made] = eval(task, model=answers(), display="none", log_dir=str(tmp_path))
    read = read_eval_log(made.location)
    read.eval.metrics = [{"name": "accuracy"}, {"name": "nobodys_metric"}]
    write_eval_log(read)
    header = invalidate_samples(made.location, [(1, None)])
    assert _own(header)["stale"] == ["nobodys_metric"]
    assert _results(header).scores[0].metrics["accuracy"].value == 1.0
    assert _own(header)["outcomes"]["invalidated"] == 1


def test_scores_that_no_scorer_gave_keep_their_metrics_and_are_called_stale(log: str) -> None:
    read = read_eval_log(log)
    assert read.reductions is not None
    added = _results(read).scores[0].model_copy(update={"name": "mood", "scorer": "mood"})
    _results(read).scores.append(added)
    read.reductions.append(read.reductions[0].model_copy(update={"scorer": "mood"}))
    write_eval_log(read)
    made = invalidate_samples(log, [(1, None)])
    assert _results(made).scores[1] == added
    assert _own(made)["stale"] == ["mood"]
    assert [one.scorer for one in read_eval_log(log).reductions or ()] == ["includes", "mood"]


def test_a_log_without_samples_can_not_be_edited_so(tmp_path: Path) -> None:
    task = Task(dataset=sums(2), scorer=includes(), name="sums")
    [made] = eval(task, model=answers(), display="none", log_dir=str(tmp_path), log_samples=False)
    with pytest.raises(UsageError, match="holds no samples"):
        invalidate_samples(made.location)
    # when its metrics are to be computed anew, they stay, as there is nothing to compute them from
    with pytest.raises(UsageError, match="holds no samples"):
        recompute_metrics(made.location)
    assert read_eval_log(made.location, header_only=True).results == made.results


def test_samples_that_never_ran_are_still_counted(tmp_path: Path) -> None:
    # given a run that its first error ended
    def reply(input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
        raise OSError("gone")

    task = Task(dataset=sums(5), scorer=includes(), name="sums")
    model = get_model("mock/model", custom_outputs=reply, memoize=False)
    [made] = eval(task, model=model, display="none", log_dir=str(tmp_path), max_samples=1)
    assert (made.status, made.results) == ("error", None)
    # then its results, once they are computed, are of all that was planned
    log = recompute_metrics(made.location)
    assert _results(log).total_samples == 5
    assert _own(log)["outcomes"]["not_run"] == 4

"""The end of a run: each score with its standard error and coverage, what befell samples, tokens, time, the log."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from display_snapshots import UNIT, finished

from proctor.display import MetricSnapshot, error_text, report_text, unit_from_log
from proctor.schema import (
    EvalConfig,
    EvalDataset,
    EvalError,
    EvalLog,
    EvalMetric,
    EvalResults,
    EvalScore,
    EvalSpec,
    EvalStats,
    ModelUsage,
)

OUTCOMES = {"total": 10, "completed": 9, "error:OSError": 1, "unscored:refusal": 1}


def a_log(**changes: object) -> EvalLog:
    score = EvalScore(
        name="match",
        scorer="match",
        scored_samples=8,
        unscored_samples=1,
        metrics={
            "accuracy": EvalMetric(name="accuracy", value=0.75),
            "stderr": EvalMetric(name="stderr", value=0.1),
        },
    )
    log = EvalLog(
        status="success",
        eval=EvalSpec(
            created="2026-11-29T11:27:19+00:00",
            task="quiz",
            dataset=EvalDataset(),
            model="mock/model",
            config=EvalConfig(),
        ),
        results=EvalResults(
            total_samples=10,
            completed_samples=9,
            scores=[score],
            metadata={"proctor": {"outcomes": OUTCOMES}},
        ),
        stats=EvalStats(
            started_at="2026-11-29T11:27:19+00:00",
            completed_at="2026-11-29T11:28:29+00:00",
            model_usage={
                "mock/model": ModelUsage(input_tokens=100, output_tokens=20, input_tokens_cache_read=30),
                "mock/grader": ModelUsage(input_tokens=1, output_tokens=2),
            },
        ),
        location="logs/quiz.eval",
    )
    return log.model_copy(update=changes)


def _next(log: EvalLog) -> str:
    [line] = report_text([unit_from_log(log)])[-1:]
    label, _, value = line.strip().partition(" ")
    return value.strip() if label == "next" else ""


def test_what_did_not_come_to_its_end_says_what_to_type() -> None:
    spec = a_log().eval.model_copy(update={"task_file": "quiz.py"})
    failed = EvalError(message="ValueError('no')", traceback="", traceback_ansi="")
    assert _next(a_log(eval=spec)) == ""
    assert _next(a_log(eval=spec, status="cancelled")) == "proctor eval-retry logs/quiz.eval"
    assert _next(a_log(eval=spec, status="error")) == "proctor eval-retry logs/quiz.eval"
    # The first error ended it, and would again.
    again = _next(a_log(eval=spec, status="error", error=failed))
    assert again == "proctor eval-retry logs/quiz.eval --no-fail-on-error"
    assert _next(a_log(eval=spec, status="cancelled", location="my logs/q.eval")).endswith("'my logs/q.eval'")


@pytest.mark.parametrize(
    "changes",
    [{"task_file": None}, {"config": EvalConfig(log_samples=False)}],
    ids=["an object", "no samples"],
)
def test_what_can_t_be_gone_on_from_promises_nothing(changes: dict[str, object]) -> None:
    spec = a_log().eval.model_copy(update={"task_file": "quiz.py", **changes})
    assert _next(a_log(eval=spec, status="cancelled")) == ""


def test_a_set_is_gone_on_with_by_its_own_command() -> None:
    spec = a_log().eval.model_copy(update={"task_file": "quiz.py", "eval_set_id": "set"})
    assert _next(a_log(eval=spec, status="cancelled")).startswith("the same `proctor eval-set` again")


def test_a_finished_unit_says_all_that_was_asked_for() -> None:
    assert report_text([finished()]) == [
        "quiz · mock/model · done in 1:02",
        "  accuracy       0.617 ± 0.071  partial: 47 / 50 scored (TimeoutError 2, ValueError 1)",
        "  f1[astronomy]  0.500",
        "  outcomes       3 errors (TimeoutError 2, ValueError 1), 4 stopped at a limit (token 4)",
        "  tokens         12.3k in, 678 out, 3 retries",
        "  log            logs/2026-11-29T11-27-19-00-00_quiz_8JwCx7XzYLyCEauVUHYrhy.eval",
    ]


def test_units_are_separated_and_scorers_named_when_there_are_several() -> None:
    two = replace(finished(), results=(MetricSnapshot("match", "mean", 1.0), MetricSnapshot("f1", "mean", 0.5)))
    lines = report_text([finished(), two])
    assert lines.count("") == 2  # the second one stands before the table
    assert "  match/mean  1.000" in lines
    assert "  f1/mean     0.500" in lines


def test_several_units_end_in_a_table_that_says_what_differs_and_what_befell_them() -> None:
    units = [
        replace(finished(), label="temperature=0.2"),
        replace(UNIT, label="temperature=0.4", status="error", done=1, errors={"OSError": 1}, retried=1),
    ]
    lines = report_text(units)
    assert lines[0] == "quiz · temperature=0.2 · mock/model · done in 1:02"
    befell = "3 errors (TimeoutError 2, ValueError 1), 4 stopped at a limit (token 4)"
    assert lines[-4:] == [
        "",
        "task  with             model       status  score                   scored         outcomes",
        f"quiz  temperature=0.2  mock/model  done    accuracy 0.617 ± 0.071  47/50 partial  {befell}",
        f"quiz  temperature=0.4  mock/model  failed{'':41}1 error (OSError 1), 1 sample run again",
    ]
    assert "with" not in report_text([finished(), finished()])[-3]


def test_errors_are_shown_once_and_with_their_place() -> None:
    place, error = "quiz.py:12", "ValueError('no answer')"
    examples = {"ValueError": f"{place}: {error}", "OSError": "quiz.py:3: OSError('gone')"}
    failed = replace(UNIT, status="error", error=error, error_place=place, error_examples=examples)
    assert [line.split(maxsplit=1) for line in report_text([failed]) if ".py" in line] == [
        ["error", "quiz.py:12: ValueError('no answer')"],
        ["first", "quiz.py:3: OSError('gone')"],
    ]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("UsageError('the dataset gave no sample')", "the dataset gave no sample"),
        ('PrerequisiteError("the key isn\'t set:\\nset it")', "the key isn't set: set it"),
        ("UsageError('cut sho", "UsageError('cut sho"),
        ("UsageError('a' 'b' + c)", "UsageError('a' 'b' + c)"),
        ("ValueError('no answer')", "ValueError('no answer')"),
    ],
)
def test_of_an_error_that_is_written_for_people_the_sentence_is_shown(message: str, shown: str) -> None:
    error = EvalError(message=message, traceback="", traceback_ansi="")
    assert error_text(error) == shown
    unit = unit_from_log(a_log(status="error", error=error, results=None))
    assert f"  error   {shown}" in report_text([unit])
    # and once, though it is the first of its kind, too
    again = replace(unit, error_examples={"UsageError": error_text(error)})
    assert sum(shown in line for line in report_text([again])) == 1


def test_an_example_that_was_cut_short_is_no_other_error() -> None:
    place, error = "quiz.py:12", f"ValueError('{'why ' * 100}')"
    examples = {"ValueError": f"{place}: {error}"[:200] + "…", "OSError": "quiz.py:3: OSError('gone…"}
    failed = replace(UNIT, status="error", error=error, error_place=place, error_examples=examples)
    words = [line.split() for line in report_text([failed])]
    assert [each[1] for each in words if each[:1] in (["error"], ["first"])] == ["quiz.py:12:", "quiz.py:3:"]


def test_repeated_requests_have_a_reason() -> None:
    lines = report_text([replace(finished(), retry_cause="429: slow down")])
    assert "  retries        3 (429: slow down)" in lines
    assert "  tokens         12.3k in, 678 out" in lines


def test_one_score_has_no_standard_error() -> None:
    log = a_log()
    assert log.results is not None
    log.results.scores[0].scored_samples = 1
    log.results.scores[0].metrics["stderr"].value = 0.0
    assert unit_from_log(log).results[0].stderr is None


def test_a_metric_of_fewer_samples_than_planned_says_how_many_and_why() -> None:
    missing = {"error:OSError": 1, "unscored:refusal": 2, "not_run": 3}
    log = a_log()
    assert log.results is not None
    log.results.metadata = {"proctor": {"outcomes": OUTCOMES, "partial": {"match": missing}}}
    unit = unit_from_log(log)
    assert unit.partial and unit.results[0].missing == missing
    assert "  accuracy  0.750 ± 0.100  partial: 8 / 10 scored (not run 3, refusal 2, OSError 1)" in report_text([unit])


def test_no_score_is_not_shown_as_a_number() -> None:
    nothing = MetricSnapshot("match", "accuracy", math.nan, stderr=math.nan, scored=0, total=50)
    assert "  accuracy  none  partial: 0 / 50 scored" in report_text(
        [replace(UNIT, status="cancelled", results=(nothing,))]
    )


def test_a_failed_unit_says_why_in_one_line() -> None:
    failed = replace(UNIT, status="error", error="OSError('disk\nfull')", seconds=3)
    lines = report_text([failed])
    assert lines[0] == "quiz · mock/model · failed in 0:03"
    assert "  error     OSError('disk full')" in lines
    assert "  samples   10 / 50  no scores" in lines


def test_many_metrics_leave_the_rest_to_the_log() -> None:
    unit = replace(finished(), results=tuple(MetricSnapshot("m", f"g[{n}]", 0.1) for n in range(57)))
    lines = report_text([unit])
    assert any("33 more metrics are in the log" in line for line in lines)


def test_a_log_becomes_the_unit_that_was_shown() -> None:
    unit = unit_from_log(a_log())
    assert unit.results == (MetricSnapshot("match", "accuracy", 0.75, stderr=0.1, scored=8, total=10),)
    assert (unit.status, unit.total, unit.done, unit.seconds) == ("done", 10, 10, 70.0)
    assert (unit.input_tokens, unit.output_tokens) == (131, 22)
    assert "  outcomes  1 error (OSError 1), 1 without a score (refusal 1)" in report_text([unit])


@pytest.mark.parametrize(
    ("reducer", "configured", "scored", "total"),
    [
        ("mean", None, 8, 10),
        (None, None, 8, 10),  # the default reducer, not named in the log
        (None, None, 25, 30),  # more scores than samples: nothing was reduced
        (None, [], 8, 30),  # reducing was turned off
    ],
)
def test_coverage_counts_samples_when_epochs_were_reduced(
    reducer: str | None, configured: list[str] | None, scored: int, total: int
) -> None:
    log = a_log()
    assert log.results is not None
    log.results.total_samples = 30
    log.results.scores[0].reducer = reducer
    log.results.scores[0].scored_samples = scored
    log.eval.config.epochs = 3
    log.eval.config.epochs_reducer = configured
    assert unit_from_log(log).results[0].total == total


def test_two_reducers_of_one_scorer_are_told_apart() -> None:
    log = a_log()
    assert log.results is not None
    log.results.scores = [log.results.scores[0].model_copy(update={"reducer": reducer}) for reducer in ("mean", "max")]
    assert [metric.reducer for metric in unit_from_log(log).results] == ["mean", "max"]


def test_a_log_of_another_program_without_outcome_counts_shows_missing_samples_as_errors() -> None:
    log = a_log()
    assert log.results is not None
    log.results.metadata = None
    assert any("1 error" in line for line in report_text([unit_from_log(log)]))


def test_a_log_without_results_or_end_is_shown_as_failed() -> None:
    unit = unit_from_log(
        a_log(
            status="error",
            results=None,
            stats=EvalStats(),
            error=EvalError(message="boom", traceback="", traceback_ansi=""),
        )
    )
    assert (unit.status, unit.results, unit.seconds, unit.error) == ("error", (), None, "boom")


def test_a_lone_standard_error_is_still_shown() -> None:
    log = a_log()
    assert log.results is not None
    log.results.scores[0].metrics = {
        "std": EvalMetric(name="std", value=0.3),
        "stderr": EvalMetric(name="stderr", value=0.1),
    }
    assert [(metric.name, metric.stderr) for metric in unit_from_log(log).results] == [("std", None), ("stderr", None)]


def grouped_metric(name: str, inner: str, value: float, counts: dict[str, int] | None, **params: object) -> EvalMetric:
    given = {"metric": {"type": "metric", "name": inner, "params": {}}, "group_key": "g", **params}
    metadata = None if counts is None else {"proctor": counts}
    return EvalMetric(name=name, value=value, group="grouped", params=given, metadata=metadata)


def shown(metrics: dict[str, EvalMetric]) -> list[str]:
    log = a_log()
    assert log.results is not None
    log.results.metadata = {"proctor": {"outcomes": OUTCOMES, "partial": {"match": {"error:OSError": 1}}}}
    log.results.scores[0].metrics = metrics
    return [line.strip() for line in report_text([unit_from_log(log)])[1 : 1 + len(metrics)]]


def test_groups_have_counts_of_their_own_and_their_standard_errors_beside_them() -> None:
    lines = shown(
        {
            "accuracy": EvalMetric(name="accuracy", value=0.75),
            "x": grouped_metric("x", "accuracy", 0.5, {"scored": 4, "planned": 4}),
            "x2": grouped_metric("x2", "accuracy", 1.0, {"scored": 2, "planned": 3}),
            "y": grouped_metric("y", "accuracy", 1.0, {"scored": 1, "planned": 1, "missing_epochs": 1}),
            "x3": grouped_metric("x", "stderr", 0.25, {"scored": 4, "planned": 4}),
            "x22": grouped_metric("x2", "stderr", 0.0, {"scored": 2, "planned": 3}),
        }
    )
    assert lines[:4] == [
        "accuracy      0.750          partial: 8 / 10 scored (OSError 1)",
        "accuracy[x]   0.500 ± 0.250  4 / 4 scored",
        "accuracy[x2]  1.000 ± 0.000  partial: 2 / 3 scored",
        "accuracy[y]   1.000          partial: 1 / 1 scored (missing epochs 1)",
    ]


def test_where_the_count_of_a_group_is_not_known_none_is_shown() -> None:
    assert shown(
        {
            "x": grouped_metric("x", "stderr", 0.5, None),
            "y": grouped_metric("y", "stderr", 0.5, {"scored": 4}),
        }
    ) == ["stderr[x]  0.500", "stderr[y]  0.500  4 scored"]


def test_the_mean_of_groups_has_no_standard_error() -> None:
    lines = shown(
        {
            "all": grouped_metric("all", "mean", 0.5, None, all="groups"),
            "all2": grouped_metric("all", "stderr", 0.25, None, all="groups"),
        }
    )
    assert lines == ["mean[all]    0.500", "stderr[all]  0.250"]


def test_groups_by_two_fields_are_told_apart() -> None:
    metrics = {
        "x": grouped_metric("x", "mean", 0.5, None),
        "x2": grouped_metric("x", "mean", 0.25, None, group_key="h"),
    }
    assert shown(metrics) == ["mean[g=x]  0.500", "mean[h=x]  0.250"]

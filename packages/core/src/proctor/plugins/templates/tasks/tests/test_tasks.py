"""The tasks run from their package, and their scores are what the answers deserve."""

from __future__ import annotations

from pathlib import Path

from proctor import eval as evaluate
from proctor.log import EvalLog


def results(log: EvalLog) -> dict[str, float]:
    """The metrics of the first scorer."""
    assert log.results is not None
    return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}


def test_a_model_that_knows_one_capital_of_three(tmp_path: Path) -> None:
    # given a model that always answers Paris
    answers = {"custom_outputs": ["Paris"] * 3}

    [log] = evaluate(
        "acme/capitals", model="mock/model", model_args=answers, log_dir=str(tmp_path), display="none", max_samples=1
    )

    assert log.status == "success"
    assert round(results(log)["accuracy"], 3) == 0.333


def test_the_language_is_in_what_the_model_is_told(tmp_path: Path) -> None:
    [log] = evaluate(
        "acme/capitals", model="mock/model", task_args={"language": "French"}, log_dir=str(tmp_path), display="none"
    )

    assert log.samples is not None
    assert "in French" in log.samples[0].messages[0].text

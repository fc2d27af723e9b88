"""``proctor log recover``: what it computes anew, and what it says."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from log_samples import sample, spec

from proctor.cli import main
from proctor.log import LogWriter, read_eval_log
from proctor.schema import EvalConfig, EvalDataset, EvalError, EvalPlan, EvalScorer, Score

FAILED = EvalError(message="m", traceback="t", traceback_ansi="a")


def killed(folder: Path, scorer: EvalScorer, format: Any = "eval", **fields: Any) -> Path:
    """The log of a run of 8 samples that was killed when 4 were written: their scores are 1, 1, 0, and an error."""
    writer = LogWriter.open(str(folder / "run"), spec(8, scorers=[scorer], **fields), EvalPlan(), format=format)
    written = threading.Semaphore(0)
    for number, value in enumerate((1.0, 1.0, 0.0), 1):
        kind = {"kind": "odd" if number % 2 else "even"}
        one = sample(number, scores={scorer.name: Score(value=value)}, metadata=kind)
        writer.write(one, on_ack=lambda _: written.release())
    writer.write(sample(4, scores=None, error=FAILED), on_ack=lambda _: written.release())
    for _ in range(4):
        assert written.acquire(timeout=30)
    path = folder / f"killed.{format}"
    path.write_bytes(Path(writer.location).read_bytes())
    writer.finish("cancelled", None, read_eval_log(writer.location, header_only=True).stats)
    return path


def recovered(capsysbinary: Any, path: Path, *options: str) -> tuple[str, Any]:
    """What the command prints, and the results in the new log."""
    assert main(["log", "recover", str(path), *options]) == 0
    out = capsysbinary.readouterr().out.decode()
    return out, read_eval_log(path.with_name(f"killed-recovered{path.suffix}"), header_only=True).results


def metric(name: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "options": options}


@pytest.mark.parametrize("format", ["eval", "json"])
def test_the_metrics_are_those_that_the_log_declares(capsysbinary: Any, tmp_path: Path, format: Any) -> None:
    # given a scorer that has other metrics than it usually has
    grouped = metric("grouped", metric={"type": "metric", "name": "mean", "params": {}}, group_key="kind")
    path = killed(tmp_path, EvalScorer(name="match", metrics=[metric("mean"), grouped]), format)
    # when its log is recovered
    _, results = recovered(capsysbinary, path)
    # then they are computed, and no others
    metrics = {name: one.value for name, one in results.scores[0].metrics.items()}
    assert metrics.pop("mean") == pytest.approx(2 / 3)
    assert metrics.pop("odd") == 0.5 and metrics.pop("even") == 1 and "accuracy" not in metrics
    # and what befell the samples is counted
    assert (results.total_samples, results.completed_samples) == (8, 3)
    outcomes = {"total": 8, "completed": 3, "error:m": 1, "not_run": 4}
    partial = {"match": {"error:m": 1, "not_run": 4}}
    assert results.metadata == {"proctor": {"outcomes": outcomes, "partial": partial}}


def test_a_scorer_of_ones_own_needs_no_code(capsysbinary: Any, tmp_path: Path) -> None:
    declared = EvalScorer(name="theirs", options={"strict": True}, metrics=[metric("inspect_ai/accuracy")])
    _, results = recovered(capsysbinary, killed(tmp_path, declared))
    [row] = results.scores
    assert (row.name, row.params) == ("theirs", {"strict": True})
    assert row.metrics["accuracy"].value == pytest.approx(2 / 3)


def test_a_metric_of_ones_own_is_left_out_and_named(capsysbinary: Any, tmp_path: Path) -> None:
    out, results = recovered(
        capsysbinary, killed(tmp_path, EvalScorer(name="m", metrics=[metric("own"), metric("mean")]))
    )
    assert list(results.scores[0].metrics) == ["mean"] and "code is not at hand: own." in out


def test_metrics_by_key(capsysbinary: Any, tmp_path: Path) -> None:
    declared = EvalScorer(name="m", metrics={"*": [metric("mean")]})
    path = killed(tmp_path, declared)
    assert recovered(capsysbinary, path)[1].total_samples == 8  # scores that are no dicts fit no key


def test_it_says_what_was_recovered_and_from_where(capsysbinary: Any, tmp_path: Path) -> None:
    path = killed(tmp_path, EvalScorer(name="match", metrics=[metric("accuracy")]))
    out, _ = recovered(capsysbinary, path)
    target = path.with_name("killed-recovered.eval")
    assert out.splitlines() == [
        f"Recovered 4 of 8 samples from {path}, 1 of them with an error.",
        "Computed from these: match/accuracy 0.667.",
        f"The log is {target} (status error): `proctor log dump {target}` shows it.",
    ]
    # and to programs
    out, _ = recovered(capsysbinary, path, "--overwrite", "--json")
    found = json.loads(out)
    assert found.pop("metrics")["match/accuracy"] == pytest.approx(2 / 3)
    assert found == {
        "source": str(path),
        "log": str(target),
        "status": "error",
        "recovered": 4,
        "total": 8,
        "errors": 1,
        "skipped": [],
    }


@pytest.mark.parametrize(("limit", "planned"), [(None, 100), (6, 6), ([90, 97], 7), ([2, 1000], 98)])
def test_samples_that_were_planned_are_known_without_their_ids(
    capsysbinary: Any, tmp_path: Path, limit: Any, planned: int
) -> None:
    many = EvalDataset(name="numbers", samples=100, sample_ids=None)
    config = EvalConfig(epochs=2, limit=limit)
    path = killed(tmp_path, EvalScorer(name="match", metrics=[metric("accuracy")]), dataset=many, config=config)
    assert recovered(capsysbinary, path)[1].total_samples == 2 * planned


def test_a_log_in_which_nothing_was_scored_has_no_metric(capsysbinary: Any, tmp_path: Path) -> None:
    writer = LogWriter.open(
        str(tmp_path / "run"), spec(8, scorers=[EvalScorer(name="match", metrics=[metric("accuracy")])]), EvalPlan()
    )
    path = tmp_path / "killed.eval"
    path.write_bytes(Path(writer.location).read_bytes())
    writer.finish("cancelled", None, read_eval_log(writer.location, header_only=True).stats)

    out, _ = recovered(capsysbinary, path)

    assert "Recovered 0 of 8 samples" in out and "nan" not in out
    assert "None of them has a score: no metric has a value." in out

"""A metric that can't be computed: refused before the first request where that can be known, else the others stand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from engine_runs import answers

from proctor import Task
from proctor.cli import main
from proctor.contracts import UsageError
from proctor.dataset import IterableDataset, Sample
from proctor.display import failed_metrics, report_text, unit_from_log
from proctor.engine import recompute_metrics, score
from proctor.log import read_eval_log
from proctor.schema import EvalLog
from proctor.scorer import Metric, Scorer, accuracy, grouped, includes, match, metric, scorer, stderr
from proctor.solver import Generate, Solver, TaskState, generate, solver

Run = Callable[..., list[EvalLog]]

SAMPLES = [
    Sample(id=1, input="What is 1?", target="1", metadata={"g": "a"}),
    Sample(id=2, input="What is 2?", target="2", metadata={"h": "a"}),
]


@scorer(metrics=[accuracy(), grouped(accuracy(), "g")])
def by_group() -> Scorer:
    return includes()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (grouped(accuracy(), "g"), r"task 'sums': grouped\(\.\.\.\) needs the metadata field 'g' .*sample 2 .*'h'"),
        (stderr(cluster="g"), r"stderr\(cluster=\.\.\.\) needs the metadata field 'g'"),
        ({"*": [grouped(stderr(cluster="h"), "g")]}, r"needs the metadata field 'h' .*sample 1 .*leave the metric out"),
    ],
)
def test_a_field_that_a_metric_needs_and_samples_lack_is_told_before_the_first_request(
    run: Run, given: Metric, text: str
) -> None:
    model = answers()
    task = Task(dataset=SAMPLES, scorer=includes(), metrics=[given], name="sums")
    with pytest.raises(UsageError, match=text):
        run(task, model=model)
    [log] = run(task, model=model, score=False)
    assert log.status == "success"


def test_a_field_that_a_solver_may_set_is_a_warning_and_counts_once_it_is_set(run: Run) -> None:
    @solver
    def sorted_in() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state.metadata["g"] = "a"
            return state

        return solve

    task = Task(dataset=SAMPLES, solver=[sorted_in(), generate()], scorer=by_group(), name="sums")
    with pytest.warns(UserWarning, match=r"task 'sums': grouped\(\.\.\.\) needs .* have a solver set it"):
        [log] = run(task, answers())
    assert log.status == "success" and log.results is not None
    assert log.results.scores[0].metrics["a"].value == 1


def one_by_one() -> Iterator[Sample]:
    yield from SAMPLES


def test_the_other_metrics_and_scorers_stand(run: Run) -> None:
    [log] = run(Task(dataset=IterableDataset(one_by_one), scorer=[by_group(), includes()], name="sums"), answers())
    assert log.status == "error" and log.error is not None and log.results is not None
    assert [list(row.metrics) for row in log.results.scores] == [["accuracy"], ["accuracy", "stderr"]]
    [failed] = failed_metrics(log)
    assert (failed["scorer"], failed["metric"]) == ("by_group", "grouped")
    assert log.error.message.startswith("not computed: the metric grouped of the scorer by_group: grouped(...) needs")
    assert "proctor log recompute LOG" in log.error.message
    text = "\n".join(report_text([unit_from_log(log)]))
    assert "2 / 2 scored" in text and "the metric grouped of the scorer by_group" in text
    assert read_eval_log(log.location).results == log.results


def test_scoring_without_the_metric_mends_the_log(run: Run) -> None:
    [log] = run(Task(dataset=IterableDataset(one_by_one), scorer=by_group(), name="sums"), answers())
    still = recompute_metrics(log.location)
    assert (still.status, failed_metrics(still)) == ("error", failed_metrics(log))
    kept = score(log.location, match(), output=f"{log.location}-kept.eval")
    assert (kept.status, failed_metrics(kept)) == ("error", failed_metrics(log))
    mended = score(log.location, metrics=[accuracy()], action="overwrite", overwrite=True)
    assert (mended.status, mended.error, failed_metrics(mended)) == ("success", None, [])


def test_a_metric_that_was_mended_is_computed_from_the_scores_that_there_are(run: Run) -> None:
    fault = [True]

    @metric(name="mended_metric")
    def own() -> Metric:
        return lambda scores: 1 / 0 if fault[0] else float(len(scores))

    task = Task(dataset=SAMPLES, scorer=includes(), metrics=[own(), accuracy()], name="sums")
    [log] = run(task, answers())
    assert log.status == "error" and log.error is not None
    assert "ZeroDivisionError: division by zero" in log.error.message and "1 / 0" in log.error.traceback
    fault.clear()
    fault.append(False)
    mended = recompute_metrics(log.location)
    assert (mended.status, mended.error) == ("success", None)
    assert mended.results is not None
    assert {key: one.value for key, one in mended.results.scores[0].metrics.items()} == {
        "mended_metric": 2.0,
        "accuracy": 1.0,
    }
    fault[0] = True
    again = recompute_metrics(log.location)
    assert again.status == "error" and [one["metric"] for one in failed_metrics(again)] == ["mended_metric"]


FILE = """
from pathlib import Path
from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import accuracy, includes, metric

@metric
def shaky():
    return lambda scores: {result}

@task
def sums():
    return Task(dataset=[Sample(input="1", target="a")], scorer=includes(), metrics=[shaky(), accuracy()])
"""


def test_the_commands_say_it_by_their_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sums.py"
    file.write_text(FILE.format(result="'hello'"))
    logs = ["--log-dir", str(tmp_path), "--model", "mock/model", "--json"]
    assert main(["eval", str(file), *logs]) == 1
    [said] = json.loads(capsys.readouterr().out)["logs"]
    assert [one["name"] for one in said["metrics"]] == ["accuracy"]
    assert said["failed_metrics"][0]["reason"] == "it gave 'hello', which is no number"
    assert said["error"].startswith("not computed: the metric shaky of the scorer includes: it gave 'hello'")
    log = said["location"]
    assert main(["log", "recompute", log, "--json"]) == 1
    assert main(["score", log, "--json", "--output-file", str(tmp_path / "scored.eval")]) == 1
    file.write_text(FILE.format(result="1.0"))
    assert main(["eval-retry", log, "--log-dir", str(tmp_path / "again"), "--json"]) == 0
    capsys.readouterr()
    [read] = map(read_eval_log, (tmp_path / "again").glob("*.eval"))
    assert read.results is not None and read.results.scores[0].metrics["shaky"].value == 1.0
    assert main(["score", log, "--json", "--action", "overwrite", "--metric", "accuracy", "--overwrite"]) == 0

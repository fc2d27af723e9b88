"""``proctor eval-retry``: from a log to the rest of its evaluation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor import Task, eval, eval_retry, eval_retry_async, plugins, score
from proctor.cli import main
from proctor.contracts import LogBusyError, UsageError
from proctor.dataset import Sample
from proctor.engine import retry
from proctor.log import FileStore, index_eval_log, read_eval_log, write_eval_log
from proctor.schema import EvalLog

QUIZ = """\
import os

from proctor import Epochs, Task, task
from proctor.dataset import Sample
from proctor.scorer import includes
from proctor.solver import generate, solver


@solver
def fails():
    async def solve(state, generate):
        if str(state.sample_id) in os.environ.get("QUIZ_FAILS", "").split():
            raise ValueError("no")
        return state
    return solve


@task
def quiz(count: int = 6, api_key: str = "none", temperature: float = 0.0):
    samples = [Sample(input=f"Question {n}", target="Default", id=n) for n in range(1, count + 1)]
    return Task(dataset=samples, solver=[fails(), generate(temperature=temperature)], scorer=includes())
"""


@pytest.fixture
def quiz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., EvalLog]]:
    """A run of the quiz in which some samples fail."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROCTOR_LOG_DIR", raising=False)
    (tmp_path / "quiz.py").write_text(QUIZ)

    def run(fails: str = "", **options: Any) -> EvalLog:
        monkeypatch.setenv("QUIZ_FAILS", fails)
        told = {"model": "mock/model", "display": "none", "log_dir": "logs", "fail_on_error": False, **options}
        [log] = eval("quiz.py", **told)
        monkeypatch.delenv("QUIZ_FAILS")
        return log

    return run  # type: ignore[return-value]  # nothing to undo


def _proctor(*arguments: str) -> int:
    return main(["eval-retry", *arguments])


def test_a_dry_run_says_which_samples_would_run_and_why(
    quiz: Callable[..., EvalLog], capsys: pytest.CaptureFixture[str]
) -> None:
    log = quiz("2 5", limit=5)
    before = sorted(Path("logs").iterdir())
    assert _proctor(log.location, "--dry-run") == 0
    text = capsys.readouterr().out
    assert "quiz · mock/model: 3 samples are done and kept; 2 would run: ended in an error 2" in text
    assert "ended in an error: 2, 5" in text and log.location in text
    assert _proctor(log.location, "--dry-run", "--json") == 0
    [told] = json.loads(capsys.readouterr().out)["logs"]
    assert (told["total"], told["reused"], told["to_run"]) == (5, 3, 2)
    assert told["why"] == {"error": {"count": 2, "first": [2, 5]}} and told["complete"] is None
    assert sorted(Path("logs").iterdir()) == before


def test_the_rest_is_run_with_the_options_of_the_log(quiz: Callable[..., EvalLog]) -> None:
    # given a run with all kinds of options
    log = quiz(
        "2",
        task_args={"count": 9, "temperature": 0.5, "api_key": "a-secret-key"},
        limit=(2, 7),
        epochs=2,
        epochs_reducer=["mean", "max"],
        max_tokens=50,
        token_limit=5000,
        time_limit=60,
        model_roles={"grader": {"model": "mock/judge", "temperature": 0.2}},
        model_args={"latency": 0.001},
        tags=["a"],
        metadata={"why": "test"},
        fail_on_error=0.5,
        sandbox="local",
        sample_shuffle=3,
    )
    # when it is resumed, twice
    made = Path(log.location)
    while True:
        [again] = eval_retry(made, display="none", max_connections=3)
        if again.location == str(made):
            break
        made = Path(again.location)
    # then it is the same evaluation
    assert again.status == "success" and again.results is not None
    assert again.samples is not None and len(again.samples) == 10
    for name in ("task", "task_id", "task_args", "model", "model_roles", "tags", "sandbox", "scorers", "plan"):
        assert getattr(again.eval, name, None) == getattr(log.eval, name, None), name
    for name in ("limit", "epochs", "epochs_reducer", "fail_on_error", "token_limit", "time_limit", "sample_shuffle"):
        assert getattr(again.eval.config, name) == getattr(log.eval.config, name), name
    assert again.eval.dataset == log.eval.dataset
    assert again.eval.metadata is not None and again.eval.metadata["why"] == "test"


def test_a_complete_evaluation_says_so_and_runs_nothing(
    quiz: Callable[..., EvalLog], capsys: pytest.CaptureFixture[str]
) -> None:
    log = quiz("3")
    [done] = eval_retry(log, display="none")
    # when its first log is given once more, then the one that has all is found
    assert _proctor(log.location, "--display", "none") == 0
    assert f"complete, nothing to run ({done.location})" in capsys.readouterr().out
    assert len(list(Path("logs").iterdir())) == 2


def test_a_log_that_died_is_resumed_without_recovering_it(quiz: Callable[..., EvalLog]) -> None:
    log = quiz()
    data = Path(log.location).read_bytes()
    Path(log.location).write_bytes(data[: data.index(b"_journal/summaries/") - 30])  # no summaries, no directory
    assert index_eval_log(log.location).header.status == "started"
    [done] = eval_retry(log.location, display="none")
    assert done.status == "success" and done.eval.metadata is not None
    assert done.eval.metadata["proctor"]["reused"] > 0


@pytest.mark.parametrize("formats", [("json", "eval"), ("eval", "json"), ("json", "json")])
def test_both_formats(quiz: Callable[..., EvalLog], formats: tuple[Any, Any]) -> None:
    log = quiz("4", log_format=formats[0])
    [done] = eval_retry(log, display="none", log_format=formats[1])
    assert done.location.endswith(formats[1]) and done.samples is not None
    assert [one.id for one in done.samples] == [1, 2, 3, 4, 5, 6]
    assert done.samples[3].error_retries is not None


def test_what_has_changed_is_refused_with_what_it_was(
    quiz: Callable[..., EvalLog], capsys: pytest.CaptureFixture[str]
) -> None:
    log = quiz("1")
    Path("quiz.py").write_text(QUIZ.replace("count: int = 6", "count: int = 7").replace("= 0.0", "= 1.0"))
    with pytest.raises(UsageError) as raised:
        eval_retry(log, display="none")
    text = str(raised.value)
    assert "solver[2].params.temperature: 0.0 -> 1.0" in text and "dataset.size: 6 -> 7" in text and "--force" in text
    # unless it is to be a new evaluation
    assert _proctor(log.location, "--force", "--dry-run") == 0
    assert "a new evaluation, nothing is kept; 7 would run: changed 7" in capsys.readouterr().out
    [new] = eval_retry(log, display="none", force=True)
    assert new.eval.task_id != log.eval.task_id and new.samples is not None and len(new.samples) == 7


def test_outside_of_a_repository_the_folder_to_call_it_from_is_named(
    quiz: Callable[..., EvalLog], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # given a log of a task that was called by a path, and a person who has gone into its folder
    log = quiz(fails="2")
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    assert _proctor(str(tmp_path / log.location)) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "outside of a git repository a task is known by its path" in said
    assert f"call this from the folder that it was run from ({tmp_path})" in said
    # when that is done, it goes on
    monkeypatch.chdir(tmp_path)
    assert _proctor(log.location, "--dry-run") == 0


def test_a_log_of_another_program_or_version_is_refused_with_the_reason(quiz: Callable[..., EvalLog]) -> None:
    log = quiz("1")
    assert log.eval.metadata is not None
    own = log.eval.metadata["proctor"]

    def rewritten(**changes: Any) -> str:
        made = read_eval_log(log.location)
        assert made.eval.metadata is not None
        made.eval.metadata["proctor"] = {**own, **changes}
        return write_eval_log(made, log.location)

    with pytest.raises(UsageError, match="version 0 of the identity; this release has version 1"):
        eval_retry(rewritten(identity={**own["identity"], "v": 0}), display="none")
    with pytest.raises(UsageError, match="a release of Proctor that names no unit"):
        eval_retry(rewritten(unit=None), display="none")


def test_scored_copies_are_given_together_with_the_run_that_they_are_of(quiz: Callable[..., EvalLog]) -> None:
    log = quiz("2 5")
    copy = score(log.location, "exact", action="overwrite")
    # when all logs of the folder are given, the copy before the run
    [done] = eval_retry([copy, log], display="none")
    # then the run is gone on with, with its own scores
    scores = {str(one.id): one.scores for one in read_eval_log(done.location).samples or ()}
    assert [list(each or ()) for each in scores.values()] == [["includes"]] * 6
    # and so when the copy alone is given
    eval_retry(copy, display="none")
    assert len(list(Path("logs").iterdir())) == 3


def test_of_two_at_once_the_second_is_refused(quiz: Callable[..., EvalLog]) -> None:
    log = quiz("1")
    with FileStore().hold(log.location), pytest.raises(LogBusyError, match="in use by"):
        eval_retry(log, display="none")
    eval_retry(log, display="none")


def test_the_log_of_a_run_that_goes_on_is_not_resumed_within_it(quiz: Callable[..., EvalLog]) -> None:
    log = quiz("1")
    seen: list[str] = []

    def tell(resumed: Any) -> None:
        try:
            index_eval_log(log.location)
        except LogBusyError as error:
            seen.append(str(error))

    retry([log.location], {"display": "none"}, tell=tell)
    assert len(seen) == 1
    index_eval_log(log.location)  # it is let go of afterwards


def test_several_logs_at_once(quiz: Callable[..., EvalLog], capsys: pytest.CaptureFixture[str]) -> None:
    one, two = quiz("1"), quiz("2 3", task_args={"count": 4})
    assert _proctor(one.location, two.location, "--display", "none", "--json") == 0
    told = json.loads(capsys.readouterr().out)["logs"]
    assert [log["completed_samples"] for log in told] == [6, 4]
    same = quiz("1")
    with pytest.raises(UsageError, match="of the same work as another"):
        eval_retry([one, same], display="none")


def test_options_that_decide_what_is_asked_are_refused(
    quiz: Callable[..., EvalLog], capsys: pytest.CaptureFixture[str]
) -> None:
    log = quiz("1")
    with pytest.raises(UsageError, match="limit, temperature can't be given to a resume"):
        eval_retry(log, limit=3, temperature=0.5)
    assert _proctor(log.location, "--temperature", "1") == 2
    assert "no option --temperature" in capsys.readouterr().err


def test_a_log_elsewhere_goes_on_from_the_old_one(quiz: Callable[..., EvalLog], tmp_path: Path) -> None:
    log = quiz("1 2")
    [second] = eval_retry(log, display="none", log_dir="other")
    assert second.location.startswith("other/") and second.eval.metadata is not None
    assert second.eval.metadata["proctor"]["resumes"] == [log.location]
    # when the new one is a dead log, it leads to the old one
    data = Path(second.location).read_bytes()
    Path(second.location).write_bytes(data[: data.index(b"samples/")])
    Path(second.location).write_bytes(data[: data.index(b"samples/") - 30])
    plans: list[Any] = []
    retry([second.location], {"display": "none", "dry_run": True}, tell=plans.extend)
    assert plans[0].plan.reused == 4 and plans[0].plan.logs == [log.location, second.location]
    Path(log.location).unlink()
    with pytest.warns(UserWarning, match="not there any more"):
        retry([second.location], {"display": "none", "dry_run": True}, tell=plans.extend)


def test_what_can_not_be_made_again_says_why(quiz: Callable[..., EvalLog], tmp_path: Path) -> None:
    log = quiz("1")
    Path("quiz.py").unlink()
    with pytest.raises(UsageError, match=r"the task file quiz\.py of .* is not there"):
        eval_retry(log, display="none")
    [made] = eval(Task(dataset=[Sample(input="x")], name="loose"), model="mock/model", display="none", log_dir="logs")
    made.status = "cancelled"
    with pytest.raises(UsageError, match="was given as an object"):
        eval_retry(made, display="none")
    with pytest.raises(UsageError, match="there is no log at"):
        eval_retry("logs/none.eval")
    with pytest.raises(UsageError, match="no log was named"):
        eval_retry([])


def test_samples_taken_by_chance_are_the_same_ones_again(quiz: Callable[..., EvalLog]) -> None:
    log = quiz("1 2 3", sample_shuffle=True, limit=4)
    [done] = eval_retry(log, display="none")
    assert done.samples is not None and log.samples is not None
    assert {one.id for one in done.samples} == {one.id for one in log.samples}


@pytest.mark.anyio
async def test_from_within_a_loop(quiz: Callable[..., EvalLog], anyio_backend: Any) -> None:
    from anyio import to_thread

    log = await to_thread.run_sync(quiz, "1")
    [done] = await eval_retry_async(log, display="none")
    assert done.status == "success"
    with pytest.raises(UsageError, match="eval_retry_async"):
        eval_retry(log)


def test_a_log_without_samples_is_refused_before_anything_is_asked(
    quiz: Callable[..., EvalLog], capsys: pytest.CaptureFixture[str]
) -> None:
    log = quiz("2", log_samples=False)
    before = sorted(Path("logs").iterdir())
    for more in ([], ["--dry-run"]):
        assert _proctor(log.location, *more) == 2
        assert f"{log.location} holds no samples" in capsys.readouterr().err
    assert sorted(Path("logs").iterdir()) == before
    # but it can be run as a new evaluation
    [again] = eval_retry(log, force=True, display="none")
    assert again.status == "success" and again.samples is not None and len(again.samples) == 6


PRICES = {"mock/*": {"input": 1.0, "output": 2.0, "input_cache_read": 0.1}}


def test_limits_and_prices_are_those_of_the_first_run(quiz: Callable[..., EvalLog]) -> None:
    log = quiz("2", cost_limit=3.5, model_cost_config=PRICES, time_limit=60.25, working_limit=30)
    [again] = eval_retry(log.location, display="none")
    for name in ("cost_limit", "time_limit", "working_limit"):
        assert getattr(again.eval.config, name) == getattr(log.eval.config, name), name
    assert (again.eval.metadata or {})["proctor"]["options"] == (log.eval.metadata or {})["proctor"]["options"]
    assert (again.eval.metadata or {})["proctor"]["options"] == {"model_cost_config": PRICES, "time_limit": 60.25}
    used = [sample.model_usage["mock/model"].total_cost for sample in again.samples or ()]
    assert len(used) == 6 and all(used) and len(set(used)) == 1
    # other prices may be given
    log = quiz("2", cost_limit=3.5, model_cost_config=PRICES)
    other = {"mock/model": {"input": 2.0, "output": 4.0}}
    [again] = eval_retry(log.location, display="none", model_cost_config=other)
    costs = {sample.id: sample.model_usage["mock/model"].total_cost or 0 for sample in again.samples or ()}
    assert costs[2] == pytest.approx(2 * costs[1])


def test_a_budget_counts_one_run_and_who_goes_on_is_told(quiz: Callable[..., EvalLog]) -> None:
    log = quiz("2", max_cost=9, max_tokens_total=10_000, model_cost_config=PRICES)
    with pytest.warns(UserWarning, match=r"had max_cost=9, max_tokens_total=10000; this one has no budget"):
        [again] = eval_retry(log.location, display="none")
    assert "max_cost" not in (again.eval.metadata or {})["proctor"]["options"]
    log = quiz("2 3 4", max_tokens_total=10_000)
    [again] = eval_retry(log.location, display="none", max_tokens_total=1, max_samples=1)
    assert again.samples is not None and len(again.samples) == 4 and again.status == "cancelled"


def test_logs_with_prices_that_contradict_each_other_are_not_gone_on_with_at_once(quiz: Callable[..., EvalLog]) -> None:
    one = quiz("2", model_cost_config=PRICES)
    other = quiz("2", model_cost_config={"mock/*": {"input": 5.0, "output": 2.0}}, task_args={"count": 5})
    with pytest.raises(UsageError, match="has other prices for mock/"):
        eval_retry([one, other], display="none")


PLUGIN = """\
from proctor.contracts import ModelProvider
from proctor.hookspecs import hookimpl
from proctor.model import get_model


@hookimpl
def proctor_model_providers():
    return [ModelProvider(name="unpacked", factory=lambda name, **_: get_model("mock/model").api)]
"""


def test_plugins_that_were_given_are_those_of_the_resume(
    quiz: Callable[..., EvalLog], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # given a run whose model is of a plugin without packaging
    (tmp_path / "unpacked.py").write_text(PLUGIN)
    log = quiz("2", model="unpacked/model", plugins=["unpacked.py"])
    plugins.configure()
    # when it is resumed without naming that again
    assert _proctor(log.location, "--display", "none") == 0
    # then it is there, and the next resume knows of it, too
    [again] = [name for name in Path("logs").iterdir() if name.name != Path(log.location).name]
    assert index_eval_log(str(again)).header.eval.metadata["proctor"]["options"] == {"plugins": ["unpacked.py"]}  # type: ignore[index]
    # and one that is not there any more is named
    (tmp_path / "unpacked.py").unlink()
    capsys.readouterr()
    plugins.configure()
    assert _proctor(log.location, "--force", "--display", "none") == 2
    assert "--plugin unpacked.py: there is no such file" in capsys.readouterr().err

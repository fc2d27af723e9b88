"""A scoring that is stopped: what was graded is kept, and the same call goes on from there."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_runs import answers, sums
from lost_store import GONE, LostStore

from proctor import Task, score
from proctor.cli import main
from proctor.contracts import UsageError
from proctor.engine import ScoringStopped
from proctor.log import EvalLog, FileStore, list_spills, push_spill, read_eval_log
from proctor.scorer import Score, Scorer, accuracy, includes, mean, scorer
from proctor.solver import Target, TaskState

Run = Callable[..., list[EvalLog]]

asked: Counter[tuple[str, int | str, int]] = Counter()
"""Which scorer was asked for which sample and epoch, how often."""
broken: set[int | str] = set()
"""Samples on which the second scorer fails."""


@pytest.fixture(autouse=True)
def fresh() -> None:
    asked.clear()
    broken.clear()


def _ask(name: str, state: TaskState) -> None:
    asked[name, state.sample_id, state.epoch] += 1
    if name != "first" and state.sample_id in broken:
        raise OSError("the grader is away")


@scorer(metrics=[accuracy()])
def first() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        _ask("first", state)
        return Score(value="C")

    return score


@scorer(metrics=[mean()])
def second(strict: bool = False) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score | None:
        _ask("second", state)
        return None if state.sample_id == 1 else Score(value=int(state.sample_id))

    return score


@pytest.fixture(params=["eval", "json"])
def made(request: pytest.FixtureRequest, run: Run) -> EvalLog:
    [log] = run(Task(dataset=sums(6), scorer=includes(), name="sums"), model=answers(), log_format=request.param)
    return log


def stopped(log: EvalLog, *scorers: Any, **arguments: Any) -> ScoringStopped:
    with pytest.raises(ScoringStopped) as found:
        score(log.location, list(scorers) or [first(), second()], max_samples=1, **arguments)
    return found.value


def results(header: EvalLog) -> Any:
    read = read_eval_log(header.location)
    return read.results, [(one.id, one.scores) for one in read.samples or ()]


def left(log: EvalLog) -> list[str]:
    return [name for name in os.listdir(Path(log.location).parent) if ".grades-" in name]


def test_the_same_call_goes_on_from_what_a_failure_has_left(made: EvalLog, tmp_path: Path) -> None:
    # given a scoring that ended at the fourth sample, since the second of two scorers failed
    broken.add(4)
    said = stopped(made)
    assert said.exit_code == 1 and "'second' failed (OSError('the grader is away')) on sample 4" in str(said)
    assert "3 of 6 samples are done and kept" in str(said) and len(left(made)) == 1
    assert not Path(made.location.replace("sums_", "sums_-scored")).exists()
    # when the grader is back
    broken.clear()
    known: list[int] = []
    header = score(made.location, [first(), second()], on_resume=known.append)
    # then nobody was asked again but the one that had failed, and all is as if nothing had happened
    assert {key: count for key, count in asked.items() if count > 1} == {("second", 4, 1): 2}
    assert known == [4] and left(made) == []
    alone = score(made.location, [first(), second()], output=tmp_path / f"alone{Path(made.location).suffix}")
    assert results(header) == results(alone)
    kinds = [event.event for event in (read_eval_log(header.location).samples or [])[3].events]
    assert kinds.count("score") == 4  # the run's, the failure, and the two


def test_it_may_be_stopped_again_and_again(made: EvalLog) -> None:
    for number in (2, 3, 5):
        broken.clear()
        broken.add(number)
        stopped(made)
    assert len(left(made)) == 3
    broken.clear()
    header = score(made.location, [first(), second()])
    assert set(asked.values()) == {1, 2} and asked["first", 2, 1] == 1 and left(made) == []
    assert [row.scored_samples for row in read_eval_log(header.location).results.scores] == [6, 6, 5]  # type: ignore[union-attr]


def test_other_scorers_and_a_fresh_start_ask_again(made: EvalLog) -> None:
    broken.add(3)
    stopped(made)
    asked.clear()
    stopped(made, first(), second(strict=True))
    assert asked["first", 1, 1] == 1
    asked.clear()
    stopped(made, fresh=True)
    assert asked["first", 1, 1] == 1 and len(left(made)) == 2


def test_ctrl_c_says_how_to_go_on(made: EvalLog, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "import os, signal, anyio\n"
        "from proctor.scorer import Score, accuracy, scorer\n"
        "@scorer(metrics=[accuracy()])\n"
        "def slow():\n"
        "    async def score(state, target):\n"
        "        if state.sample_id == 3 and 'STOP' in os.environ:\n"
        "            os.kill(os.getpid(), getattr(signal, os.environ['STOP']))\n"
        "            await anyio.sleep_forever()\n"
        "        return Score(value='C')\n"
        "    return score\n"
    )
    command = ["score", made.location, "--scorer", f"{file}@slow", "--max-samples", "1"]
    for name, code in (("SIGINT", 130), ("SIGTERM", 143)):
        assert main([*command, "--env", f"STOP={name}"]) == code
        said = " ".join(capsys.readouterr().err.split())
        assert f"stopped by {name}. 2 of 6 samples are done and kept" in said and "the same command goes on" in said
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    del os.environ["STOP"]
    assert main(command) == 0
    assert "2 samples were graded before this was stopped" in capsys.readouterr().err


def test_failures_are_tolerated_as_in_a_run(made: EvalLog) -> None:
    broken.update({2, 5})
    assert "on sample 5" in str(stopped(made, fail_on_error=1))
    header = score(made.location, [first(), second()], fail_on_error=2)
    [_, _, row] = read_eval_log(header.location).results.scores  # type: ignore[union-attr]
    assert (row.scored_samples, row.unscored_samples) == (3, 2)
    asked.clear()
    score(made.location, [second()], overwrite=True, fail_on_error=False, retry_on_error=2)
    assert asked["second", 2, 1] == 3 and asked["second", 3, 1] == 1


def test_the_same_scoring_is_not_done_twice_at_once(made: EvalLog) -> None:
    broken.add(3)
    stopped(made)
    path = str(Path(made.location).parent / left(made)[0])
    with FileStore().hold(path), pytest.raises(UsageError, match="the same scoring is under way"):
        score(made.location, [first(), second()])


def test_a_log_that_is_scored_in_its_place_goes_on_too(made: EvalLog) -> None:
    broken.add(3)
    stopped(made, overwrite=True)
    broken.clear()
    score(made.location, [first(), second()], overwrite=True)
    assert asked["first", 2, 1] == 1 and left(made) == []
    assert len(read_eval_log(made.location).results.scores) == 3  # type: ignore[union-attr]


def test_a_place_that_can_not_be_written_is_refused_before_anything_is_asked(made: EvalLog, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--output-file"):
        score(made.location, first(), output=tmp_path / "file" / "scored.eval")
    assert not asked


def test_grades_whose_store_is_lost_are_sent_when_it_is_back(
    made: EvalLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_SPILL_DIR", str(tmp_path / "spill"))
    monkeypatch.setenv("PROCTOR_STORE_PATIENCE", "0")
    monkeypatch.setattr("proctor.log._memory_store.MemoryStore", LostStore)
    output = f"memory://{tmp_path}/scored.eval"
    broken.add(4)

    def lose(done: int, total: int) -> None:
        LostStore.error = GONE if done == 2 else LostStore.error

    # given a store that is lost when two samples are graded
    try:
        assert "proctor log push" in str(stopped(made, output=output, tell=lose))
    finally:
        LostStore.error = None
    broken.clear()
    # then the same call wants them sent first, and goes on from them
    [spill] = list_spills()
    with pytest.raises(UsageError, match="log push"):
        score(made.location, [first(), second()], output=output)
    push_spill(spill)
    score(made.location, [first(), second()], output=output)
    assert asked["first", 1, 1] == asked["first", 3, 1] == 1

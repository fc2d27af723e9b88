"""Runs that go on from earlier logs: what is done is kept, what is not is run, and the results are the same."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
import resumed_runs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from resumed_runs import WORLD, attempt, metrics

from proctor.engine import Agenda, invalidate_samples, run
from proctor.log import FileStore, index_eval_log, read_eval_log, to_json, write_eval_log
from proctor.schema import EvalLog, Provenance


@pytest.fixture(autouse=True)
def _world() -> None:
    WORLD.fails = lambda id, epoch: False
    WORLD.runs.clear()


def _done(logs: list[str]) -> set[tuple[Any, int]]:
    """By reading the samples themselves."""
    found = set()
    for log in logs:
        for one in read_eval_log(log).samples or ():
            if one.error is None:
                found.add((one.id, one.epoch))
    return found


def _same(log: EvalLog, whole: EvalLog) -> None:
    assert log.results is not None and whole.results is not None
    expected = metrics(whole)
    assert metrics(log).keys() == expected.keys()
    for name, value in metrics(log).items():
        assert math.isclose(value, expected[name], rel_tol=1e-9, abs_tol=1e-9), name
    ours, theirs = (dict(one.results.metadata["proctor"]["outcomes"]) for one in (log, whole))  # type: ignore[index,union-attr]
    ours.pop("retried", None)
    assert ours == theirs
    assert (log.results.total_samples, log.results.completed_samples) == (
        whole.results.total_samples,
        whole.results.completed_samples,
    )
    assert log.stats.model_usage == whole.stats.model_usage


_PART = st.tuples(
    st.sets(st.integers(1, 8), max_size=6),  # the samples that fail
    st.sampled_from([False, False, True]),  # whether the first error ends the run
    st.none() | st.floats(0.05, 0.99),  # where its log is cut, as if it had died
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(_PART, min_size=1, max_size=3),
    epochs=st.sampled_from([1, 2]),
    lazy=st.booleans(),
    all_metrics=st.booleans(),
    formats=st.lists(st.sampled_from(["eval", "eval", "json"]), min_size=4, max_size=4),
)
def test_any_sequence_of_partial_runs_comes_to_the_same_end(
    parts: list[Any], epochs: int, lazy: bool, all_metrics: bool, formats: list[str]
) -> None:
    args = {"epochs": epochs, "lazy": lazy, "all_metrics": all_metrics}
    wanted = {(id, epoch) for id in range(1, 9) for epoch in range(1, epochs + 1)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        WORLD.fails = lambda id, epoch: False
        whole = attempt(folder / "whole", **args)
        # given runs that failed in part, or died
        logs: list[str] = []
        for (failing, stops, cut), format in zip(parts, formats, strict=False):
            WORLD.fails = lambda id, epoch, failing=failing: id in failing
            WORLD.runs.clear()
            before = _done(logs)
            made = attempt(folder, logs, {"fail_on_error": stops, "max_samples": 2, "log_format": format}, **args)
            # then none of them ran what was done before, nor anything twice
            assert not before & set(WORLD.runs) and set(WORLD.runs.values()) <= {1}
            if cut is not None and format == "eval":
                _cut(made.location, cut)
            logs.append(made.location)
        # when the last one has no obstacle
        WORLD.fails = lambda id, epoch: False
        WORLD.runs.clear()
        before = _done(logs)
        last = attempt(folder, logs, {"log_format": formats[-1]}, **args)
        # then exactly what was missing is run, and the results are those of a run without interruption
        assert set(WORLD.runs) == wanted - before
        assert _done([last.location]) == wanted and len(read_eval_log(last.location).samples or ()) == len(wanted)
        _same(last, whole)
        assert last.eval.task_id == read_eval_log(logs[0], header_only=True).eval.task_id


def _cut(path: str, share: float) -> None:
    """Leave the beginning of a log, with the member that says what it is of."""
    with open(path, "rb") as file:
        data = file.read()
    first = data.index(b"PK\x03\x04", 4) if data.count(b"PK\x03\x04") > 1 else len(data)
    os.truncate(path, max(first, int(len(data) * share)))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("store", ["file", "memory"])
def test_a_resume_works_on_both_back_ends_and_in_any_store(tmp_path: Path, backend: str, store: str) -> None:
    folder: Any = str(tmp_path) if store == "file" else f"memory://{tmp_path.name}-{backend}"
    WORLD.fails = lambda id, epoch: id > 4
    options = {"async_backend": backend}
    first = attempt(folder, options=options)
    WORLD.fails = lambda id, epoch: False
    WORLD.runs.clear()
    second = attempt(folder, [first.location], options)
    assert sorted(id for id, _ in WORLD.runs) == [5, 6, 7, 8]
    assert second.status == "success" and second.eval.eval_id != first.eval.eval_id
    assert second.eval.metadata is not None
    own = second.eval.metadata["proctor"]
    assert own["reused"] == 4 and own["resumes"] == [first.location.rpartition("/")[2]]


def test_attempts_are_counted_and_their_errors_kept(tmp_path: Path) -> None:
    WORLD.fails = lambda id, epoch: id == 3
    first = attempt(tmp_path, options={"retry_on_error": 1})
    second = attempt(tmp_path, [first.location])
    WORLD.fails = lambda id, epoch: False
    third = attempt(tmp_path, [first.location, second.location])
    index = index_eval_log(third.location)
    assert (index.state(3, 1), index.attempts(3, 1), index.attempts(1, 1)) == ("done", 4, 1)
    kept = index.sample(3, 1).error_retries
    assert kept is not None and [one.message for one in kept] == ["ValueError('no 3')"] * 3
    assert "raise ValueError" in kept[0].traceback


def test_members_are_copied_as_they_are_and_the_log_is_no_bigger(tmp_path: Path) -> None:
    # given a log with most of the samples, and one with all
    whole = attempt(tmp_path / "whole", count=60)
    first = attempt(tmp_path, options={"limit": 50}, count=60)
    # when the rest is run
    second = attempt(tmp_path, [first.location], count=60)
    # then it is as big as the one of an uninterrupted run, and the samples are the same to the byte
    sizes = [Path(log.location).stat().st_size for log in (whole, second)]
    assert sizes[1] <= 1.1 * sizes[0]
    before, after = read_eval_log(first.location), read_eval_log(second.location)
    assert before.samples is not None and after.samples is not None
    assert to_json(before.samples) == to_json(after.samples[:50])  # as text: NaN is not equal to itself
    assert Path(first.location).exists()


def _recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """Name and content of a log after each of its commits."""
    states: list[tuple[str, bytes]] = []
    create = FileStore.create

    def recording(self: FileStore, name: str) -> Any:
        sink = create(self, name)
        commit = sink.commit

        def recorded(segment: bytes, directory: bytes | bytearray) -> None:
            commit(segment, directory)
            states.append((name, Path(name).read_bytes()))

        sink.commit = recorded  # type: ignore[method-assign]  # a spy on the real sink
        return sink

    monkeypatch.setattr(FileStore, "create", recording)
    return states


def test_a_run_that_dies_while_it_copies_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a resume whose copy takes several commits
    monkeypatch.setattr("proctor.log._index._MANY", 7)
    monkeypatch.setattr("proctor.log._writer._HELD", 3000)
    first = attempt(tmp_path / "run", options={"limit": 40}, count=44)
    states = _recorded(monkeypatch)
    done = attempt(tmp_path / "run", [first.location], count=44)
    monkeypatch.undo()
    whole = metrics(done)
    assert len(states) > 5
    for number, (name, content) in enumerate(states):
        # when it dies after any of them, or within it
        folder = tmp_path / str(number)
        folder.mkdir()
        old, new = folder / Path(first.location).name, folder / Path(name).name
        shutil.copy(first.location, old)
        new.write_bytes(content[: len(content) - (number % 3) * 40])
        acknowledged = _done([str(old), str(new)])
        # then the next one goes on from both logs and runs only what neither has
        WORLD.runs.clear()
        last = attempt(folder, [str(old), str(new)], count=44)
        assert set(WORLD.runs) == {(id, 1) for id in range(1, 45)} - acknowledged
        assert metrics(last) == pytest.approx(whole, abs=1e-9)


def test_what_was_invalidated_in_the_newest_log_is_run_again(tmp_path: Path) -> None:
    first = attempt(tmp_path)
    second = attempt(tmp_path, [first.location])
    assert sum(WORLD.runs.values()) == 8
    log = read_eval_log(second.location)
    assert log.samples is not None
    log.invalidated = True
    log.samples[2].invalidation = Provenance(timestamp="2026-01-01T00:00:00Z", author="me")
    write_eval_log(log)
    WORLD.runs.clear()
    third = attempt(tmp_path, [first.location, second.location])
    assert list(WORLD.runs) == [(3, 1)]
    assert index_eval_log(third.location).counts() == {"done": 8}


def test_what_was_invalidated_in_any_log_is_run_again_wherever_it_stands(tmp_path: Path) -> None:
    # given a log, a copy of it, and a later attempt that has its samples, too
    first = attempt(tmp_path)
    copy = tmp_path / "copy.eval"
    shutil.copy(first.location, copy)
    second = attempt(tmp_path, [first.location], {"epochs": 2})
    WORLD.runs.clear()
    # when a sample is invalidated in the first of them
    invalidate_samples(first.location, [(3, None)])
    third = attempt(tmp_path, [first.location, str(copy), second.location], {"epochs": 2})
    # then the same sample does not count in the others either
    assert list(WORLD.runs) == [(3, 1)]
    # and the one that took its place does
    WORLD.runs.clear()
    attempt(tmp_path, [first.location, str(copy), second.location, third.location], {"epochs": 2})
    assert not WORLD.runs


def test_a_larger_selection_or_more_epochs_reuse_what_is_there(tmp_path: Path) -> None:
    first = attempt(tmp_path, options={"limit": 3})
    second = attempt(tmp_path, [first.location], {"epochs": 2, "limit": 4})
    assert set(WORLD.runs.values()) == {1} and len(WORLD.runs) == 8
    assert len(read_eval_log(second.location).samples or ()) == 8
    # and a smaller one takes no more than is wanted
    third = attempt(tmp_path, [second.location], {"limit": 2})
    assert [one.id for one in read_eval_log(third.location).samples or ()] == [1, 2]


def test_a_log_whose_samples_can_no_longer_be_read_fails_the_unit(tmp_path: Path) -> None:
    first = attempt(tmp_path, options={"limit": 4})
    index = index_eval_log(first.location)

    def agenda(units: Any) -> Agenda:
        return Agenda(prior={units[0].id: [index]})

    index.hold()
    os.truncate(first.location, 2000)
    result = run(
        resumed_runs.resumable, resumed_runs.model(), {"display": "none", "log_dir": str(tmp_path / "new")}, agenda
    )
    assert result.exit_code == 1 and result.logs[0].status == "error"

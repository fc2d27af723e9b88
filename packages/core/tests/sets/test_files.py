"""The files beside the logs of a set, and who may work on it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from child_processes import running
from log_samples import spec

from proctor.contracts import UsageError
from proctor.log import store_for
from proctor.schema import ModelConfig
from proctor.sets import held_set, read_set_id
from proctor.sets._files import write_set


@pytest.fixture(params=["file", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "set") if request.param == "file" else f"memory://{tmp_path}/set"


def test_a_set_keeps_its_id(folder: str) -> None:
    assert read_set_id(folder) is None
    with held_set(folder) as first:
        assert len(first) == 22
    with held_set(folder) as again:
        assert again == first == read_set_id(folder)
    store, name = store_for(f"{folder}/.eval-set-id")
    assert store.read(name) == first.encode()  # no newline: other tools compare it


def test_a_new_set_may_be_given_an_id_and_an_old_one_not(folder: str) -> None:
    with held_set(folder, "mine") as id:
        assert id == "mine"
    with pytest.raises(UsageError, match="holds the eval set mine, not other"), held_set(folder, "other"):
        pass


def test_two_at_once_are_one_and_a_refusal(folder: str) -> None:
    with held_set(folder), pytest.raises(UsageError, match=r"is being run by .*own with --log-dir"), held_set(folder):
        pass
    with held_set(folder):
        pass


def test_of_many_who_begin_at_once_one_has_it_and_all_see_one_id(folder: str) -> None:
    begin, end = threading.Barrier(6), threading.Barrier(6)
    ids: list[str] = []
    refused: list[UsageError] = []

    def one() -> None:
        begin.wait(30)
        try:
            with held_set(folder) as id:
                ids.append(id)
                end.wait(30)
        except UsageError as error:
            refused.append(error)
            end.wait(30)

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    # All may be refused: who makes the file holds it for a moment. Never do two have it.
    assert len(ids) <= 1
    assert len(ids) + len(refused) == 6


HOLDS = """
import sys
from proctor.sets import held_set
with held_set(sys.argv[1]):
    print("HELD", flush=True)
    sys.stdin.read()
"""


def test_a_run_that_was_killed_does_not_hold_it_any_more(tmp_path: Path) -> None:
    folder = str(tmp_path / "set")
    with running(
        [sys.executable, "-c", HOLDS, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and "HELD" in child.stdout.readline()
        with pytest.raises(UsageError, match="being run by"), held_set(folder):
            pass
        child.kill()
        child.wait(60)
    with held_set(folder):
        pass


@pytest.mark.parametrize("content", [b"", b"x" * 1_000, b" \n"])
def test_an_id_file_that_holds_none_is_mended(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".eval-set-id").write_bytes(content)
    with held_set(str(tmp_path)) as id:
        assert (tmp_path / ".eval-set-id").read_text() == id


def test_the_tasks_of_a_set_are_written_as_the_peer_has_them(tmp_path: Path) -> None:
    judge = ModelConfig(model="mock/judge")
    specs = [
        spec(task="a", task_id="ID1", task_file="a.py", task_args={"n": 1, "m": 2}, task_args_passed={"n": 1}),
        spec(task="b", task_id="ID2", model_args={"latency": 1}, model_roles={"grader": judge, "jury": [judge, judge]}),
    ]
    write_set(str(tmp_path), "SET", specs)
    found = json.loads((tmp_path / "eval-set.json").read_text())
    assert found["eval_set_id"] == "SET"
    first, second = found["tasks"]
    assert first == {
        "name": "a",
        "task_id": "ID1",
        "task_file": "a.py",
        "task_args": {"n": 1},
        "model": "openai/gpt-4o-mini",
        "model_args": {},
        "sequence": 0,
    }
    assert (second["sequence"], second["model_args"]) == (1, {"latency": 1})
    assert second["model_roles"] == {"grader": "mock/judge", "jury": "mock/judge,mock/judge"}

"""Several components of one name: none is lost silently."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from proctor import Task, eval
from proctor.contracts import UsageError
from proctor.dataset import Sample
from proctor.registry import _registry, create, registered, registry_info
from proctor.scorer import create_reducers

SOLVER = """
from proctor.solver import solver

@solver{named}
def {function}():
    async def solve(state, generate):
        state.output.completion = {word!r}
        return state
    return solve
"""


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Tests that ran before in this process may have a `shout` of their own.
    kept = {key: dict(places) for key, places in _registry._factories.items() if "shout" not in key}
    monkeypatch.setattr(_registry, "_factories", kept)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., ModuleType]:
    def load(file: str, text: str, module: str = "") -> ModuleType:
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        name = module or f"loaded_{path.parent.name}_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        made = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made

    return load


def _solver(word: str, function: str = "shout", named: str = "") -> str:
    return SOLVER.format(word=word, function=function, named=named)


def test_a_file_that_is_loaded_again_takes_its_own_place(load: Callable[..., ModuleType]) -> None:
    load("a/mine.py", _solver("old"))
    again = load("a/mine.py", _solver("new"), module="another_name_for_the_same_file")
    file = registry_info(again.shout).file  # other tests have a "shout" too
    assert [each for each in registered("solver") if registry_info(each).file == file] == [again.shout]
    assert registry_info(create("solver", "shout")).module == "another_name_for_the_same_file"


def test_two_files_with_one_name_are_refused_by_name_and_both_are_told(load: Callable[..., ModuleType]) -> None:
    first = load("a/mine.py", _solver("a"))
    second = load("b/mine.py", _solver("b", "other", "(name='shout')"))
    with pytest.raises(LookupError, match=r"defined in .*a/mine\.py and in .*b/mine\.py: rename one of them"):
        create("solver", "shout")
    assert {first.shout, second.other} <= set(registered("solver"))


def test_the_package_says_which_is_meant(load: Callable[..., ModuleType]) -> None:
    load("a/mine.py", _solver("a"), module="one_package.mine")
    load("b/mine.py", _solver("b"), module="two_package.mine")
    assert registry_info(create("solver", "one_package/shout")).module == "one_package.mine"
    assert registry_info(create("solver", "two_package/shout")).module == "two_package.mine"


def test_one_s_own_hides_the_built_in_with_a_warning(load: Callable[..., ModuleType]) -> None:
    load("a/mine.py", _solver("a", "generate"))
    with pytest.warns(UserWarning, match=r"the one in .*a/mine\.py, which hides Proctor's own: write proctor/generate"):
        assert registry_info(create("solver", "generate")).file.endswith("a/mine.py")
    assert registry_info(create("solver", "proctor/generate")).module.startswith("proctor.")


def test_an_unknown_name_has_its_close_match_once(load: Callable[..., ModuleType]) -> None:
    load("a/mine.py", _solver("a"))
    load("b/mine.py", _solver("b"))
    with pytest.raises(LookupError, match=r"no solver is named 'shoot'\. Did you mean shout\?"):
        create("solver", "shoot")


def test_reducers_of_one_name_are_a_usage_error(load: Callable[..., ModuleType]) -> None:
    reducer = "from proctor.scorer import score_reducer, mean_score\n@score_reducer\ndef best(): return mean_score()\n"
    load("a/mine.py", reducer)
    load("b/mine.py", reducer)
    with pytest.raises(UsageError, match=r"a/mine\.py and in .*b/mine\.py"):
        create_reducers("best")


def test_a_solver_named_by_its_file_is_the_one_in_the_file(load: Callable[..., ModuleType], tmp_path: Path) -> None:
    load("a/mine.py", _solver("a"))
    load("b/mine.py", _solver("b"))
    options: dict[str, Any] = {"model": "mock/model", "display": "none", "log_dir": str(tmp_path / "logs")}
    task = Task(dataset=[Sample(input="x")])
    for folder in ("a", "b"):
        [log] = eval(task, solver=f"{tmp_path / folder / 'mine.py'}@shout", **options)
        assert log.samples is not None and log.samples[0].output.completion == folder
    with pytest.raises(UsageError, match="--solver shout: the solver 'shout' is defined in"):
        eval(task, solver="shout", **options)

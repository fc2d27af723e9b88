"""Canaries: the promises of the root conftest hold for the process that runs the tests."""

from __future__ import annotations

import ast
import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio
from repo_files import offenders, relative, tracked, tree

from proctor import Task, eval
from proctor.dataset import Sample
from proctor.scorer import Score, Scorer, Target, accuracy, scorer
from proctor.solver import Generate, Solver, TaskState, solver
from proctor_testkit import OutsideNetworkError

# Tests that start a loop by themselves need their reason here: the fixture would run them on both back-ends.
OWN_LOOPS = {
    "packages/core/tests/engine/test_fairness.py": "only trio has a simulated clock",
    "packages/provider-openai/tests/test_whole_call.py": "one model in three loops, of both kinds",
    "packages/testkit/tests/test_fake_kubernetes_parts.py": "the server's own framing, which is asyncio code",
    "packages/sandbox-k8s/tests/test_k8s_conforms.py": "a container that the checks of both back-ends share",
    "tests/support/shared_container.py": "the same",
    "tests/peer_scoring/peer_scoring.py": "runs in the peer's environment",
    "tests/peer_scoring/test_scorers.py": "compares values with the peer's, whatever computed them",
}
# Tests that take minutes and show what an engine does; both back-ends run the other tests of the same code.
ONE_BACK_END = {
    "packages/provider-llamacpp/tests/test_real_model.py": "of what the model says; the suite of the kit is on both",
    "packages/sandbox-docker/tests/test_conformance_podman.py": "both run over Docker's engine",
    "packages/sandbox-docker/tests/test_docker_many.py": "hundreds of containers",
    "packages/sandbox-docker/tests/test_docker_projects.py": "what the engine is asked for; the suite is on both",
    "packages/sandbox-docker/tests/test_docker_restart.py": "an engine of the test's own",
    "packages/sandbox-k8s/tests/test_k8s_pods.py": "hundreds of pods; those of a few are on both",
    "packages/sandbox-k8s/tests/test_k8s_streams.py": "hundreds of commands; those of a few are on both",
    "packages/sandbox-k8s/tests/test_k8s_conforms.py": "of pods that are containers; those that are processes on both",
}


@pytest.mark.anyio
async def test_the_back_end_in_use_is_the_one_asked_for(anyio_backend: str) -> None:
    await anyio.lowlevel.checkpoint()

    in_trio = trio.lowlevel.in_trio_run()

    assert anyio_backend == ("trio" if in_trio else "asyncio")
    if not in_trio:
        assert asyncio.get_running_loop().is_running()


def test_both_back_ends_are_used(request: pytest.FixtureRequest) -> None:
    name = test_the_back_end_in_use_is_the_one_asked_for.__name__
    runs = [each for each in request.session.items if each.path == request.path and each.name.startswith(f"{name}[")]

    assert [each.name for each in runs] == [f"{name}[asyncio]", f"{name}[trio]"]


# The same for runs: what is asked for is what the code of a task is in, wherever it was asked for


def in_use() -> str:
    """What runs the code that calls this; found by the back-ends' own means."""
    if trio.lowlevel.in_trio_run():
        return "trio"
    assert asyncio.current_task() is not None
    return "asyncio"


@solver
def notes_it() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.metadata["solver"] = in_use()
        state = await generate(state)
        state.metadata["after a request"] = in_use()
        return state

    return solve


@scorer(metrics=[accuracy()])
def notes_it_too() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=1, answer=in_use())

    return score


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_task_runs_on_the_back_end_that_its_run_was_given(backend: str, tmp_path: Path) -> None:
    task = Task(dataset=[Sample(input="q")], solver=notes_it(), scorer=notes_it_too())

    [log] = eval(task, model="mock/model", display="none", log_dir=str(tmp_path), async_backend=backend)

    assert log.samples is not None
    [sample] = log.samples
    assert sample.metadata == {"solver": backend, "after a request": backend}
    assert [score.answer for score in (sample.scores or {}).values()] == [backend]


CANARY = """\
import asyncio

from proctor import Task, task
from proctor.dataset import Sample
from proctor.solver import solver


@solver
def sings():
    async def solve(state, generate):
        try:
            asyncio.get_running_loop()
            name = "asyncio"
        except RuntimeError:
            import trio
            name = "trio" if trio.lowlevel.in_trio_run() else "neither"
        print(f"canary: {name}")
        return state
    return solve


@task
def canary():
    return Task(dataset=[Sample(input="q")], solver=sings())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "variable", "expected"),
    [
        (None, None, "asyncio"),
        ("asyncio", None, "asyncio"),
        ("trio", None, "trio"),
        (None, "asyncio", "asyncio"),
        (None, "trio", "trio"),
        ("asyncio", "trio", "asyncio"),
        ("trio", "asyncio", "trio"),
    ],
)
def test_the_command_runs_on_the_back_end_that_option_and_environment_ask_for(
    option: str | None, variable: str | None, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "canary.py").write_text(CANARY, encoding="utf-8")
    command = [sys.executable, "-m", "proctor", "eval", "canary.py", "--model", "mock/model", "--display", "none"]
    options = [] if option is None else ["--async-backend", option]
    env = os.environ | ({} if variable is None else {"PROCTOR_ASYNC_BACKEND": variable})

    done = subprocess.run([*command, *options], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"canary: {expected}" in done.stdout + done.stderr


def test_a_back_end_that_there_is_none_of_is_refused(tmp_path: Path) -> None:
    (tmp_path / "canary.py").write_text(CANARY, encoding="utf-8")
    command = [sys.executable, "-m", "proctor", "eval", "canary.py", "--model", "mock/model"]
    env = os.environ | {"PROCTOR_ASYNC_BACKEND": "curio"}

    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)

    assert done.returncode == 2
    assert "PROCTOR_ASYNC_BACKEND" in done.stderr and "asyncio" in done.stderr and "trio" in done.stderr


# Every asynchronous test of the repository runs on both

test_files = [path for path in tracked() if path.suffix == ".py" and "tests" in relative(path).split("/")[:3]]


def marks(nodes: list[ast.expr]) -> set[str]:
    """The names in ``pytest.mark.NAME`` in these expressions."""
    found = [each for node in nodes for each in ast.walk(node) if isinstance(each, ast.Attribute)]
    return {each.attr for each in found if ast.unparse(each.value) == "pytest.mark"}


def async_tests(body: list[ast.stmt], outer: set[str]) -> Iterator[tuple[str, set[str]]]:
    """Every asynchronous test in ``body``, with all marks that count for it."""
    for node in body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            outer = outer | marks([node.value])
    for node in body:
        if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield node.name, outer | marks(node.decorator_list)
        elif isinstance(node, ast.ClassDef):
            yield from async_tests(node.body, outer | marks(node.decorator_list))


@pytest.mark.slow
def test_every_asynchronous_test_runs_on_both_back_ends() -> None:
    def not_on_both(path: Path) -> list[str]:
        found = async_tests(tree(path).body, set())
        return [name for name, its in found if "anyio" not in its or its & {"asyncio", "trio"}]

    assert offenders(test_files, not_on_both) == {}


@pytest.mark.slow
def test_nobody_chooses_one_of_the_back_ends() -> None:
    """The root conftest gives both; a fixture of that name, or a parameter, would take one away."""

    def chosen(path: Path) -> list[str]:
        nodes = list(ast.walk(tree(path)))
        fixtures = [node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "anyio_backend"]
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        given = [ast.unparse(call) for call in calls if any(_text(each) == "anyio_backend" for each in call.args)]
        own = (
            [] if relative(path) in OWN_LOOPS else [name for call in calls if (name := ast.unparse(call.func)) in _RUNS]
        )
        return [*([] if relative(path) in ONE_BACK_END else [*fixtures, *given]), *own]

    assert offenders(test_files, chosen) == {}


_RUNS = ("anyio.run", "asyncio.run", "trio.run")


def _text(node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else None


def test_a_reason_is_given_for_files_that_are_there() -> None:
    assert OWN_LOOPS.keys() | ONE_BACK_END.keys() <= {relative(path) for path in test_files}


def test_a_connection_to_another_machine_is_refused() -> None:
    with socket.socket() as client, pytest.raises(OutsideNetworkError, match=r"192\.0\.2\.1"):
        client.connect(("192.0.2.1", 80))


def test_a_name_of_another_machine_is_not_looked_up() -> None:
    with pytest.raises(OutsideNetworkError, match="example"):
        socket.getaddrinfo("example.invalid", 443)


def test_loopback_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()


def test_no_key_of_the_person_who_runs_the_tests_is_seen() -> None:
    assert not [name for name in os.environ if name.endswith("_API_KEY")]

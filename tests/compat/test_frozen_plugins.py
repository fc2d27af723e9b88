"""Plugins that were written against an older public API work with this core, unchanged.

Each folder ``api_N`` has plugins as people wrote them then. They are frozen: what breaks them breaks somebody's plugin.
A change of the API that a frozen plugin does not survive needs a deprecation first, never an edit of the plugin; a new
API gets a new folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.log import read_eval_log
from proctor.schema import EvalLog
from proctor_testkit import FakeOpenAI

HERE = Path(__file__).parent
FROZEN = {
    "api_1/provider-acme": "ec208da559425b0e2e8eb13e06ea97867010ed7c4fd9ffd444a89ffe369b9bbe",
    "api_1/store-acme": "eaa768aa99849e78b2c80eca5b378844149d5ec2fdb0c78f8388dcf06005f60a",
}
TASK = """\
import os

from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes
from proctor.solver import generate, solver, use_tools
from proctor.tool import tool


@tool
def capital():
    async def execute(country: str) -> str:
        '''The capital of a country.

        Args:
            country: its English name.
        '''
        return {"Italy": "Rome", "Peru": "Lima"}[country]

    return execute


@solver
def unlucky():
    async def solve(state, generate):
        if state.sample_id == os.environ.get("UNLUCKY"):
            raise RuntimeError("no luck")
        return state

    return solve


@task
def capitals():
    cities = {"Italy": "Rome", "Peru": "Lima"}
    samples = [Sample(id=country, input=country, target=city) for country, city in cities.items()]
    return Task(dataset=samples, solver=[unlucky(), use_tools(capital()), generate()], scorer=includes())
"""
ANSWERS = ("The answer is Rome.", "I do not know.")

Proctor = Callable[..., str]


def digest(plugin: Path) -> str:
    """One hash of the names and contents of all files of a plugin."""
    hasher = hashlib.sha256()
    files = [path for path in sorted(plugin.rglob("*")) if path.is_file() and path.parent.name != "__pycache__"]
    for path in files:
        data = path.read_bytes()
        hasher.update(f"{path.relative_to(plugin).as_posix()} {len(data)}\n".encode() + data)
    return hasher.hexdigest()


def install(plugin: Path, site: Path) -> None:
    """Write what an installer would write of a plugin: its metadata, from its pyproject.toml."""
    project = tomllib.loads((plugin / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = project["name"], project["version"]
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in project["dependencies"]]
    (info / "METADATA").write_text("\n".join([*lines, ""]), encoding="utf-8")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{point} = {value}" for point, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")


@pytest.fixture
def proctor(tmp_path: Path) -> Proctor:
    """The command line where all frozen plugins are installed; its output."""
    site = tmp_path / "site"
    for name in FROZEN:
        install(HERE / name, site)
    (tmp_path / "capitals.py").write_text(TASK, encoding="utf-8")
    (tmp_path / "answers.json").write_text(json.dumps(ANSWERS), encoding="utf-8")
    path = os.pathsep.join([str(site), *(str(HERE / name / "src") for name in FROZEN)])

    def run(*arguments: str, code: int = 0, **env: str) -> str:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ACME", "PROCTOR_"))}
        inherited |= {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "proctor", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=inherited | env, capture_output=True, text=True, timeout=120)
        assert done.returncode == code, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    return run


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


def read_log(tmp_path: Path) -> EvalLog:
    [path] = (tmp_path / "logs").glob("*.eval")
    return read_eval_log(str(path))


@pytest.mark.parametrize("name", FROZEN)
def test_a_frozen_plugin_is_as_it_was_written(name: str) -> None:
    assert digest(HERE / name) == FROZEN[name], "nobody edits these: mend the core, or deprecate first"


def test_every_frozen_plugin_is_known_here() -> None:
    assert sorted(FROZEN) == sorted(
        path.parent.relative_to(HERE).as_posix() for path in HERE.glob("*/*/pyproject.toml")
    )


def test_the_frozen_plugins_have_no_fault(proctor: Proctor) -> None:
    listed = proctor("plugins", "--json")

    for name in ("acme", "shelf", "ledger"):
        assert f'"{name}"' in listed
    proctor("plugins", "doctor")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_provider_evaluates(proctor: Proctor, server: FakeOpenAI, tmp_path: Path, backend: str) -> None:
    server.fail(429, headers={"retry-after": "0"})

    def reply(body: dict[str, Any]) -> dict[str, Any]:
        last = body["messages"][-1]
        if last["role"] == "tool":
            return server.answer(f"It is {last['content']}.", usage={"prompt": 7, "completion": 3})
        return server.answer(calls=[("capital", {"country": last["content"]})], usage={"prompt": 5, "completion": 2})

    server.reply(reply)

    options = ("--async-backend", backend, "--log-dir", "logs", "--temperature", "0.5", "-M", "team=red")
    proctor(
        "eval", "capitals.py", "--model", "acme/large", *options, ACME_TOKEN="sesame", ACME_BASE_URL=server.base_url
    )

    log = read_log(tmp_path)
    assert log.status == "success"
    assert log.results is not None
    assert log.results.scores[0].metrics["accuracy"].value == 1.0
    assert log.stats.model_usage["acme/large"].input_tokens == 24
    assert log.stats.model_usage["acme/large"].output_tokens == 10
    assert len(server.requests) == 5  # two turns of two samples, and one that was refused
    for request in server.requests:
        assert request.headers["authorization"] == "Bearer sesame"
        assert request.headers["x-acme-team"] == "red"
        assert request.body["temperature"] == 0.5
        assert request.body["tools"][0]["function"]["name"] == "capital"
    assert "sesame" not in log.model_dump_json()


def test_a_provider_is_refused_where_its_key_is_missing(proctor: Proctor) -> None:
    said = proctor("eval", "capitals.py", "--model", "acme/large", code=2)

    assert "ACME_API_KEY" in said


def test_a_provider_refuses_bad_arguments(proctor: Proctor, server: FakeOpenAI) -> None:
    env = {"ACME_API_KEY": "k", "ACME_BASE_URL": server.base_url}

    assert "needs a team" in proctor("eval", "capitals.py", "--model", "acme/x", "-M", "strict=true", code=2, **env)
    assert "colour" in proctor("eval", "capitals.py", "--model", "acme/x", "-M", "colour=red", code=2, **env)
    assert server.requests == []


def test_a_store_and_an_observer_serve_a_run_and_an_edit(proctor: Proctor, tmp_path: Path) -> None:
    shelf = f"shelf://{tmp_path}/shelf"
    model = ("--model", "mock/m", "-M", "answers=answers.json")
    observer = ("--observer", "ledger:file=ledger.jsonl,samples=true")

    proctor("eval", "capitals.py", *model, *observer, "--max-samples", "1", "--log-dir", shelf)

    [info] = json.loads(proctor("log", "list", "--json", "--log-dir", shelf))
    location = info["name"] if isinstance(info, dict) else info
    log = json.loads(proctor("log", "dump", location))
    assert log["status"] == "success"
    assert [sample["scores"]["includes"]["value"] for sample in log["samples"]] == ["C", "I"]

    events = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text(encoding="utf-8").splitlines()]
    expected = ["run_start", "task_start", "sample_end", "sample_end", "task_end", "run_end"]
    assert [event["event"] for event in events] == expected
    assert [event["id"] for event in events[2:4]] == ["Italy", "Peru"]
    assert all(event["messages"] >= 2 for event in events[2:4])
    assert events[4] | {"event": "", "unit": ""} == {"event": "", "unit": "", "status": "success", "location": location}
    assert events[5]["exit_code"] == 0
    assert events[5]["table"][0]["metrics"]["accuracy"] == 0.5

    proctor("log", "edit", location, "--add-tag", "kept")
    assert json.loads(proctor("log", "dump", location))["tags"] == ["kept"]


def test_a_store_keeps_what_a_resume_goes_on_from(proctor: Proctor, tmp_path: Path) -> None:
    shelf = f"shelf://{tmp_path}/shelf"
    model = ("--model", "mock/m", "-M", "answers=answers.json")
    ran = ("--max-samples", "1", "--log-dir", shelf)

    proctor("eval", "capitals.py", *model, *ran, code=1, UNLUCKY="Peru")
    [first] = json.loads(proctor("log", "list", "--json", "--log-dir", shelf))
    proctor("eval-retry", first["name"])

    logs = json.loads(proctor("log", "list", "--json", "--log-dir", shelf))
    assert sorted(log["status"] for log in logs) == ["error", "success"]
    [second] = (log["name"] for log in logs if log["status"] == "success")
    samples = [json.loads(proctor("log", "dump", name))["samples"] for name in (first["name"], second)]
    assert [sample["id"] for sample in samples[1]] == ["Italy", "Peru"]
    assert samples[1][0]["uuid"] == next(sample["uuid"] for sample in samples[0] if sample["id"] == "Italy")

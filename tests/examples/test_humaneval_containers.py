"""HumanEval with the model's code in containers: the same example, and a sandbox that confines it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from proctor import eval
from proctor.model import ChatMessage, ModelOutput, get_model

IMAGE = "proctor-python:latest"


@pytest.fixture(params=["DOCKER_HOST", "CONTAINER_HOST"], ids=["docker", "podman"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that has an image with Python (`tests/services/python_image.sh`)."""
    address = os.environ.get(request.param)
    if not address:
        pytest.skip(f"{request.param} names no engine: `tests/services/docker.sh start` or podman.sh starts one")
    monkeypatch.setenv("DOCKER_HOST", address)
    found = subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True, text=True, timeout=60)
    if found.returncode:
        pytest.skip(f"the engine at {address} has no image {IMAGE}: `tests/services/python_image.sh` makes it")


@pytest.mark.slow
@pytest.mark.usefixtures("engine")
def test_solutions_pass_their_tests_in_containers_and_others_do_not(
    example: Callable[[str], ModuleType], options: dict[str, Any]
) -> None:
    humaneval = example("humaneval")
    known = [(sample.metadata["prompt"], sample.target) for sample in humaneval.humaneval().dataset]

    def solve(messages: list[ChatMessage], *others: Any) -> ModelOutput:
        [body] = [body for prompt, body in known if prompt in messages[-1].text]
        return ModelOutput.from_content("m", f"```python\n{body}```")

    solver = get_model("mock/model", memoize=False, custom_outputs=solve)
    [good] = eval(humaneval.humaneval(), model=solver, limit=5, sandbox=("docker", IMAGE), **options)
    [bad] = eval(humaneval.humaneval(), model="mock/model", limit=2, sandbox=("docker", IMAGE), **options)

    assert [sample.scores["passes_tests"].value for sample in good.samples or [] if sample.scores] == ["C"] * 5
    scores = [sample.scores["passes_tests"] for sample in bad.samples or [] if sample.scores]
    assert [score.value for score in scores] == ["I", "I"]
    assert "SyntaxError" in (scores[0].explanation or "")

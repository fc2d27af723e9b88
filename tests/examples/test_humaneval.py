"""The HumanEval example: what becomes of a reply, and its tests in the sandbox."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from proctor import eval
from proctor.model import ChatMessage, ModelOutput, get_model

PROMPT = 'from typing import List\n\n\ndef total(xs: List[int]) -> int:\n    """The sum."""\n'


@pytest.fixture
def humaneval(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("humaneval")


@pytest.mark.parametrize(
    "reply",
    [
        "Here it is:\n```python\ndef total(xs: List[int]) -> int:\n    return sum(xs)\n```\nDone.",
        "```\ndef total(xs):\n    return sum(xs)\n```",
        "```python\nprint('first a test')\n```\n```python\ndef total(xs):\n    return sum(xs)\n```",
        "def total(xs: List[int]) -> int:\n    return sum(xs)",
        "    return sum(xs)",
        "```python\n    return sum(xs)\n```",
        "```python\ndef total(xs):\n    return sum(xs)",
    ],
)
def test_code_is_found_in_a_reply_and_made_whole(humaneval: ModuleType, reply: str) -> None:
    scope: dict[str, Any] = {}

    exec(humaneval.program(reply, PROMPT, "total"), scope)

    assert scope["total"]([1, 2, 3]) == 6


def test_all_reference_solutions_are_there(humaneval: ModuleType) -> None:
    samples = list(humaneval.humaneval().dataset)

    assert len(samples) == 164
    assert samples[0].id == "HumanEval/0"


def test_solutions_pass_their_tests_in_the_sandbox_and_others_do_not(
    humaneval: ModuleType, options: dict[str, Any]
) -> None:
    known = [(sample.metadata["prompt"], sample.target) for sample in humaneval.humaneval().dataset]

    def solve(messages: list[ChatMessage], *others: Any) -> ModelOutput:
        [body] = [body for prompt, body in known if prompt in messages[-1].text]
        return ModelOutput.from_content("m", f"```python\n{body}```")

    solver = get_model("mock/model", memoize=False, custom_outputs=solve)
    [good] = eval(humaneval.humaneval(), model=solver, limit=5, **options)
    [bad] = eval(humaneval.humaneval(), model="mock/model", limit=2, **options)

    assert [sample.scores["passes_tests"].value for sample in good.samples or [] if sample.scores] == ["C"] * 5
    scores = [sample.scores["passes_tests"] for sample in bad.samples or [] if sample.scores]
    assert [score.value for score in scores] == ["I", "I"]
    assert "SyntaxError" in (scores[0].explanation or "")


def test_code_that_never_ends_is_stopped(
    humaneval: ModuleType, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(humaneval, "SECONDS", 1)
    looping = get_model("mock/model", memoize=False, custom_outputs=["```python\nwhile True: pass\n```"])

    [log] = eval(humaneval.humaneval(), model=looping, limit=1, **options)

    [sample] = log.samples or []
    assert sample.scores is not None
    assert sample.scores["passes_tests"].value == "I"
    assert "not done after" in (sample.scores["passes_tests"].explanation or "")

"""The mock provider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.contracts import UsageError
from proctor.model import ChatMessageUser, GenerateConfig, MockError, ModelOutput, get_model

pytestmark = pytest.mark.anyio


async def ask(prompt: str = "?", **args: Any) -> str:
    output = await get_model("mock/model", memoize=False, **args).generate(prompt)
    return output.completion


async def test_it_answers_by_default() -> None:
    output = await get_model("mock/model").generate("What is 2 + 2?")

    assert output.completion == "Default output from mock/model"
    assert output.usage is not None and output.usage.total_tokens == 4 + 8


async def test_lines_of_a_file_are_used_in_turn(tmp_path: Path) -> None:
    (tmp_path / "answers.txt").write_text("one\ntwo\n", encoding="utf-8")
    model = get_model("mock/model", answers=str(tmp_path / "answers.txt"), memoize=False)

    assert [(await model.generate("?")).completion for _ in range(3)] == ["one", "two", "one"]


async def test_an_object_maps_prompts_to_answers(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    file.write_text(json.dumps({"2 + 2": "4", "*": "?!"}), encoding="utf-8")

    assert await ask("2 + 2", answers=str(file)) == "4"
    assert await ask("3 + 3", answers=str(file)) == "?!"


async def test_an_array_may_hold_whole_outputs(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    output = ModelOutput.from_content("m", "cut", "max_tokens")
    file.write_text(json.dumps(["plain", output.model_dump(exclude_none=True)]), encoding="utf-8")
    model = get_model("mock/model", answers=str(file), memoize=False)

    assert (await model.generate("?")).completion == "plain"
    second = await model.generate("?")

    assert (second.completion, second.stop_reason) == ("cut", "max_tokens")


@pytest.mark.parametrize("text", ["[1, 2", '{"a": 1', "[3]"])
async def test_a_broken_file_is_a_usage_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.json").write_text(text, encoding="utf-8")

    with pytest.raises(UsageError, match=r"-M answers=.*bad\.json"):
        get_model("mock/model", answers=str(tmp_path / "bad.json"), memoize=False)
    with pytest.raises(UsageError, match="cannot read"):
        get_model("mock/model", answers=str(tmp_path / "none.json"), memoize=False)


@pytest.mark.parametrize("text", ["", "[]", "{}"])
def test_a_file_without_an_answer_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "none.txt").write_text(text)
    with pytest.raises(UsageError, match=r"none\.txt: there is no answer in it"):
        get_model("mock/model", answers=str(tmp_path / "none.txt"), memoize=False)


@pytest.mark.parametrize(
    "wrong",
    [{"latency": -1.0}, {"latency": float("nan")}, {"failures": -1}, {"failure_every": -1}, {"retry_after": -1}],
)
def test_arguments_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(wrong))} is .*: give 0 or more"):
        get_model("mock/model", memoize=False, **wrong)


def test_a_provider_in_capitals_is_a_close_match() -> None:
    with pytest.raises(UsageError, match=r"no model provider 'MOCK'\. Did you mean 'mock'"):
        get_model("MOCK/model", memoize=False)


async def test_outputs_given_in_code_are_used_once() -> None:
    model = get_model("mock/model", custom_outputs=["a", ModelOutput.from_content("m", "b")], memoize=False)

    assert [(await model.generate("?")).completion for _ in range(2)] == ["a", "b"]
    with pytest.raises(UsageError, match="ended before request 3"):
        await model.generate("?")


async def test_a_function_given_in_code_makes_the_outputs() -> None:
    async def echo(input: list[ChatMessageUser], tools: Any, tool_choice: Any, config: GenerateConfig) -> str:
        return f"{input[-1].text} {config.seed}"

    model = get_model("mock/model", custom_outputs=echo, memoize=False)

    assert (await model.generate("hi", config=GenerateConfig(seed=3))).completion == "hi 3"


async def test_it_fails_as_told() -> None:
    model = get_model("mock/model", failures=2, failure="permanent", memoize=False)

    for _ in range(2):
        with pytest.raises(MockError):
            await model.generate("?")
    assert (await model.generate("?")).completion == "Default output from mock/model"


async def test_failures_are_retried_when_they_are_transient() -> None:
    model = get_model("mock/model", failure_every=2, retry_after=0.0, memoize=False, failure="rate_limit")
    model.pacing = type(model.pacing)(random=lambda: 0.0)

    assert [(await model.generate("?")).completion for _ in range(3)] == ["Default output from mock/model"] * 3
    assert model.retries == {"rate_limit": 2}

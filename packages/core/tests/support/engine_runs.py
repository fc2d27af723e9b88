"""What runs of the engine in tests are made of: a dataset of sums, and a model that knows them."""

from __future__ import annotations

from typing import Any

from proctor.dataset import MemoryDataset, Sample
from proctor.model import ModelOutput, get_model


def sums(count: int = 4) -> MemoryDataset:
    return MemoryDataset([Sample(input=f"What is {n} + 0?", target=str(n)) for n in range(1, count + 1)])


def answers(**by_prompt: str) -> Any:
    """A mock that answers with the number in the question."""

    def reply(input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        number = next(word for word in input[-1].text.replace("?", " ").split() if word.isdigit())
        return ModelOutput.from_content("model", by_prompt.get(number, f"ANSWER: {number}"))

    return get_model("mock/model", custom_outputs=reply, memoize=False)

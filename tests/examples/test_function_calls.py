"""The function-calling example: its tools, its comparison, and a run."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from proctor import eval
from proctor.model import ChatMessage, ChatMessageAssistant, ModelOutput, get_model
from proctor.schema import EvalLog
from proctor.tool import ToolCall, ToolInfo


@pytest.fixture
def calls(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("function_calls")


def call(function: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(id="c", function=function, arguments=arguments)


def test_parameters_become_json_schema(calls: ModuleType) -> None:
    parameters = {
        "type": "dict",
        "properties": {
            "x": {"type": "float", "description": "a number", "optional": True},
            "rows": {"type": "array", "items": {"type": "tuple", "items": {"type": "dict", "properties": {}}}},
            "any": {"type": "any", "description": "anything"},
        },
        "required": ["x"],
    }

    made = calls.schema(parameters)

    assert made["type"] == "object"
    assert made["properties"]["x"] == {"type": "number", "description": "a number"}
    assert made["properties"]["rows"]["items"]["items"]["type"] == "object"
    assert made["properties"]["any"] == {"description": "anything"}
    assert made["required"] == ["x"]


def test_every_function_of_the_data_is_a_tool_that_providers_take(calls: ModuleType) -> None:
    samples = list(calls.function_calls().dataset)

    infos = [calls.as_tool(function).info() for sample in samples for function in sample.metadata["functions"]]

    assert len(samples) == 100
    assert all(
        set(info.name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") for info in infos
    )
    assert all(info.parameters.type == "object" for info in infos)


@pytest.mark.parametrize(
    ("value", "wanted", "expected"),
    [
        ("New York", "new-york", True),
        ("it's", 'it"s', True),
        ("Paris", "London", False),
        (5, 5.0, True),
        (True, 1, False),
        (False, 0, False),
        ("5", 5, False),
        ([1, 2], [1, 2], True),
        ([1, 2], [2, 1], False),
        (["A b"], ["a_b"], True),
        ({"k": 1}, {"k": [1, 2]}, True),
        ({"k": 3}, {"k": [1, 2]}, False),
        ({}, {"k": [1, ""]}, True),
        ({}, {"k": [1]}, False),
        ([{"k": "x"}], [{"k": ["X"]}], True),
    ],
)
def test_values_are_compared_as_the_leaderboard_does(
    calls: ModuleType, value: Any, wanted: Any, expected: bool
) -> None:
    assert calls.same(value, wanted) is expected


def test_calls_match_in_any_order_each_once(calls: ModuleType) -> None:
    wanted = [{"a.f": {"x": [1, 2]}}, {"a.f": {"x": [1]}}, {"g": {"y": ["", "b"]}}]

    assert calls.matched([call("g"), call("a_f", x=1), call("a_f", x=2)], wanted)
    assert calls.matched([call("a_f", x=1), call("a_f", x=1), call("g", y="B")], wanted)
    assert not calls.matched([call("a_f", x=2), call("a_f", x=2), call("g")], wanted)
    assert not calls.matched([call("a_f", x=1), call("g")], wanted)
    assert not calls.matched([call("a_f", x=1, z=1), call("a_f", x=2), call("g")], wanted)
    assert not calls.matched([call("g")], [])
    assert calls.matched([], [])


def test_arguments_that_could_not_be_read_match_nothing(calls: ModuleType) -> None:
    broken = ToolCall(id="c", function="g", arguments={}, parse_error="not JSON")

    assert not calls.matched([broken], [{"g": {"y": [""]}}])


def accuracies(log: EvalLog) -> dict[str, float]:
    assert log.status == "success", log.error
    assert log.results is not None
    return {name: metric.value for score in log.results.scores for name, metric in score.metrics.items()}


def test_the_accepted_calls_score_one_and_silence_only_where_it_is_right(
    calls: ModuleType, options: dict[str, Any]
) -> None:
    answers = {sample.input[-1].text: sample.metadata["answer"] for sample in calls.function_calls().dataset}

    def accepted(messages: list[ChatMessage], tools: list[ToolInfo], *others: Any) -> ModelOutput:
        made = [
            call(
                calls.function_name(name),
                **{key: first(values) for key, values in arguments.items() if first(values) != ""},
            )
            for answer in answers[messages[-1].text]
            for name, arguments in answer.items()
        ]
        return ModelOutput.from_message(ChatMessageAssistant(content="", tool_calls=made or None))

    def first(values: list[Any]) -> Any:
        """The first accepted value as a model would write it."""
        value = values[0]
        return plain(value)

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: first(values) for key, values in value.items() if first(values) != ""}
        return [plain(item) for item in value] if isinstance(value, list) else value

    knowing = get_model("mock/model", memoize=False, custom_outputs=accepted)
    [right] = eval(calls.function_calls(), model=knowing, **options)
    [silent] = eval(calls.function_calls(), model="mock/model", **options)

    wrong = [
        sample.id for sample in right.samples or [] if sample.scores and sample.scores["expected_calls"].value != "C"
    ]
    assert wrong == []
    assert accuracies(right)["accuracy"] == 1.0
    assert accuracies(silent)["accuracy"] == 0.2
    assert accuracies(silent)["irrelevance"] == 1.0


def test_a_category_is_a_part_and_a_wrong_one_names_all(calls: ModuleType) -> None:
    assert len(list(calls.function_calls("parallel").dataset)) == 20
    with pytest.raises(ValueError, match="irrelevance"):
        calls.function_calls("paralel")

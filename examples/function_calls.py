"""Function calls: 100 questions of the Berkeley Function Calling Leaderboard (see data/bfcl.LICENSE).

    proctor eval examples/function_calls.py --model openai/gpt-5
    proctor eval examples/function_calls.py --model openai/gpt-5 -T category=parallel

Each sample brings its own functions. The model may call them, nothing runs, and the calls are compared with the
accepted ones: the same functions in any order; each argument one of the accepted values, or left out where that is
accepted. Texts are compared without case, spaces and the marks ``,./-_*^``; 5 and 5.0 are one number. In the category
``irrelevance`` no function fits, and the right answer is to call none.

Source: Patil et al., "The Berkeley Function Calling Leaderboard (BFCL)", ICML 2025; the comparison follows its section
on abstract-syntax-tree checks, on the calls that the provider hands over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor import Task, task
from proctor.dataset import Sample, json_dataset
from proctor.model import ChatMessageSystem, ChatMessageUser, GenerateConfig
from proctor.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, grouped, scorer, stderr
from proctor.solver import Generate, Solver, TaskState, generate, solver
from proctor.tool import ToolCall, ToolDef, ToolParams

QUESTIONS = Path(__file__).parent / "data" / "bfcl.jsonl"
CATEGORIES = ("simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance")
# The leaderboard names types as Python does; a JSON Schema has other words. "any" is left out: no type is any type.
TYPES = {"dict": "object", "float": "number", "tuple": "array"}
LEFT_OUT = ""  # among the accepted values of an argument: it may be missing


def to_sample(record: dict[str, Any]) -> Sample:
    """A question as a sample, with its functions and the accepted calls in its metadata."""
    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser}
    return Sample(
        id=record["id"],
        input=[kinds[message["role"]](content=message["content"]) for message in record["messages"]],
        metadata={name: record[name] for name in ("category", "functions", "answer")},
    )


@task
def function_calls(category: str | None = None) -> Task:
    """Which functions a model calls, and with what.

    Args:
        category: one of ``simple_python``, ``multiple``, ``parallel``, ``parallel_multiple`` and ``irrelevance``.
    """
    if category is not None and category not in CATEGORIES:
        raise ValueError(f"no category is called {category!r}; there are: {', '.join(CATEGORIES)}")
    dataset = json_dataset(QUESTIONS, to_sample)
    if category is not None:
        dataset = dataset.filter(lambda sample: (sample.metadata or {})["category"] == category)
    return Task(
        dataset=dataset,
        solver=[offer_functions(), generate(tool_calls="none")],
        scorer=expected_calls(),
        config=GenerateConfig(temperature=0.0),
    )


def schema(node: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter as the leaderboard describes it, in JSON Schema."""
    made = {key: value for key, value in node.items() if key in ("description", "enum", "default", "required")}
    if node.get("type") not in (None, "any"):
        made["type"] = TYPES.get(node["type"], node["type"])
    if isinstance(node.get("items"), Mapping):
        made["items"] = schema(node["items"])
    if isinstance(node.get("properties"), Mapping):
        made["properties"] = {name: schema(child) for name, child in node["properties"].items()}
    return made


def function_name(name: str) -> str:
    """A name that every provider takes: the leaderboard's have dots, which some refuse."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def as_tool(function: Mapping[str, Any]) -> ToolDef:
    """A function of the leaderboard as a tool. It is never run."""

    async def never(**arguments: Any) -> str:
        return ""

    parameters = ToolParams.model_validate(schema(function["parameters"]))
    return ToolDef(never, function_name(function["name"]), function["description"], parameters)


@solver
def offer_functions() -> Solver:
    """Let the model call the sample's own functions."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.tools = [as_tool(function) for function in state.metadata["functions"]]
        return state

    return solve


def normal(text: str) -> str:
    """What is left of a text when case, spaces and small marks are taken away."""
    return re.sub(r"[ ,./\-_*^]", "", text).lower().replace("'", '"')


def same(value: Any, wanted: Any) -> bool:
    """Whether ``value`` is the accepted ``wanted``. Inside objects, each field has a list of accepted values."""
    if isinstance(value, str) and isinstance(wanted, str):
        return normal(value) == normal(wanted)
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(map(same, value, wanted))
    if isinstance(value, dict) and isinstance(wanted, dict):
        return fits(value, wanted)
    return bool(value == wanted)


def fits(arguments: Mapping[str, Any], accepted: Mapping[str, Any]) -> bool:
    """Whether every argument has an accepted value, and every missing one may be missing."""
    if set(arguments) - set(accepted):
        return False
    for name, values in accepted.items():
        options = values if isinstance(values, list) else [values]
        if name not in arguments:
            if LEFT_OUT not in options:
                return False
        elif not any(same(arguments[name], option) for option in options):
            return False
    return True


def matched(calls: Sequence[ToolCall], wanted: Sequence[Mapping[str, Mapping[str, Any]]]) -> bool:
    """Whether each call is one of the wanted ones, each of those once, in any order."""
    if not wanted:
        return not calls
    if len(calls) != len(wanted):
        return False
    [(name, accepted)] = wanted[0].items()
    for position, call in enumerate(calls):
        if call.parse_error is None and call.function == function_name(name) and fits(call.arguments, accepted):
            rest = [*calls[:position], *calls[position + 1 :]]
            if matched(rest, wanted[1:]):
                return True
    return False


@scorer(metrics=[accuracy(), stderr(), grouped(accuracy(), "category", all=False)])
def expected_calls() -> Scorer:
    """Whether the model's calls are the accepted ones, overall and in each category."""

    async def score(state: TaskState, target: Target) -> Score:
        calls = state.output.message.tool_calls or [] if not state.output.empty else []
        wanted = state.metadata["answer"]
        written = "\n".join(f"{call.function}({call.arguments})" for call in calls)
        return Score(
            value=CORRECT if matched(calls, wanted) else INCORRECT,
            answer=written or "(no call)",
            explanation=f"accepted: {wanted or 'no call'}",
        )

    return score

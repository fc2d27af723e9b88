# ruff: noqa: RUF001  # full-width digits and typographic marks are what some of these cases are about
"""Scorers give what Inspect AI's give on the same answers."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from typing import Any

import anyio
import pytest

import proctor.scorer
from proctor.model import ChatMessageUser, ModelOutput, get_model
from proctor.scorer import Target
from proctor.solver import TaskState

TOKENS = """
4|42|1,000|1000|3.5|-7|$4|4%|(4)|4.|½|4/2|ANSWER:|answer:|ANSWER :|A|B|(B)|b.|the|The|a|an|cat|Cat.|dog-house|don't
\\boxed{4}|**4**|x=4|.|,|!|…|é|ß|SS|1e3|1.0|1.00|0.1|+5|−5|--|-|_x_|`y`|foo_bar|U.S.|5th|3:30|1.5.2|yes|No|٤|£5
€1.234,5|100.0.|'4'|"4"|4;|#4|A,B|A and B|4\\%|\\$5|inf|nan|1’000|．5|４
"""
SPACES = ["", " ", " ", " ", "\n", "\n\n", "\t", "  "]
LOCATIONS = ["begin", "end", "any", "exact"]
EXPRESSIONS = [r"(\d+)", r"(\w+)\s+(\w+)", r"ANSWER:(.*)", r"(a)|(b)|(c)", r"(?:x)?(\d)?", "yes"]


def entries(table: str) -> list[str]:
    return [entry for line in table.strip().splitlines() for entry in line.strip("|").split("|")]


def case(scorer: str, completion: str, target: str | list[str], **args: Any) -> dict[str, Any]:
    return {"scorer": scorer, "completion": completion, "target": target, "args": args}


def random_cases(number: int) -> list[dict[str, Any]]:
    rand = random.Random(20)
    tokens = entries(TOKENS)

    def text(most: int) -> str:
        return "".join(rand.choice(tokens) + rand.choice(SPACES) for _ in range(rand.randint(0, most)))

    cases = []
    for _ in range(number):
        said = text(6)
        target = rand.choice([text(2), rand.choice(tokens), said[-5:], said[:5], [text(1), text(2)], said.upper()])
        cases.append(
            rand.choice(
                [
                    case("match", said, target, location=rand.choice(LOCATIONS), numeric=True),
                    case("match", said, target, location=rand.choice(LOCATIONS), ignore_case=rand.random() < 0.5),
                    case("includes", said, target, ignore_case=rand.random() < 0.5),
                    case("answer", said, target, pattern=rand.choice(["letter", "word", "line"])),
                    case("exact", said, target),
                    case("f1", said, target, **rand.choice([{}, {"stop_words": ["Cat", "4"]}])),
                    case(
                        "pattern",
                        said,
                        target,
                        pattern=rand.choice(EXPRESSIONS),
                        ignore_case=rand.random() < 0.5,
                        match_all=rand.random() < 0.4,
                    ),
                ]
            )
        )
    return cases


NUMBERS = """
4|−4|+4|--4|-+4|4.0|4.00|.5|4.|4..|..4|4.5.6|1e3|1E+3|1e400|inf|nan|½|2½|10²|10⁻²|²|Ⅷ|①|四|十二|百|一万|三四|٤|٣٫٤|４２
1,000.50|1.000,50|1'000|1’000|1 000|0．5|
$4|\\$4|£4|€4|₹4|4%|4€|**4**|__4__|`4`|(4)|[4]|{4}|"4"|4!|4;|4:|4?|#4|x4|4x|=4|~4|4/2|007
-0|3.0000001|1234567|12345.67|0.3333333|1_0|4\\,000|\\,4|\\%4|1{,}000|\\(4\\)|\\frac12|4th|4km|5:30
"""


def number_cases() -> list[dict[str, Any]]:
    alone = [
        case("match", template.format(number), target, location=location, numeric=True)
        for number in entries(NUMBERS)
        for template in ("{}", "so {} it is {}")
        for location in LOCATIONS
        for target in ("4", "0.5", number)
        if template.count("{}") == 1
    ]
    within = [
        case("match", f"so 7, {number} it is", number, location=location, numeric=True)
        for number in entries(NUMBERS)
        for location in LOCATIONS
    ]
    return alone + within


def answer_cases() -> list[dict[str, Any]]:
    endings = [
        "",
        ".",
        ",",
        "!",
        ":",
        ";",
        "?",
        ")",
        "..",
        " .",
        "\n",
        "\n\n",
        "\nmore",
        "\n\nmore",
        " more",
        "\r\nmore",
    ]
    heads = [
        "ANSWER: ",
        "answer:",
        "ANSWER :\n",
        "so\nAnswer: ",
        "ANSWER: A\nANSWER: ",
        "MYANSWER: ",
        "ANSWER ",
        "**ANSWER:** ",
    ]
    bodies = ["A", "b", "AB", "Paris", "New York", "4.5", "**A**", "(A)", "é", "don't"]
    return [
        case("answer", head + body + ending, body, pattern=kind)
        for kind in ("letter", "word", "line")
        for head in heads
        for body in bodies
        for ending in endings
    ]


def choice_cases() -> list[dict[str, Any]]:
    targets: list[str | list[str]] = ["A", "D", "a", "AC", "A,C", "A, C", ["A", "C"], ["C", "A"], []]
    return [
        {"scorer": "choice", "completion": "so", "target": target, "choices": ["w", "x", "y", "z"]}
        | {"shuffle": shuffle, "chosen": chosen}
        for target in targets
        for shuffle in (None, 3, 7)
        for chosen in ([], [0], [1], [3], [0, 2], [0, 1, 2, 3])
    ]


def graded_cases() -> list[dict[str, Any]]:
    replies = ["GRADE: C", "grade : i", "GRADE: P", "GRADE: X", "", "GRADE: CORRECT", "GRADE: Partial", "**GRADE: C**"]
    replies += ["GRADE: **C**", "GRADE: C.", "GRADE: Cx", "UPGRADE: C", "GRADE:\nC", "GRADE: C\nGRADE: I", "GRADE: (C)"]
    replies += ["GRADE: C\nGRADE: X", "GRADE: X\nGRADE: C", "GRADE: C\nGRADE:"]
    panels = [["GRADE: C", "GRADE: C", "GRADE: I"], ["GRADE: C", "?", "GRADE: I"], ["?", "?", "GRADE: C"]]
    panels += [["GRADE: C", "GRADE: I"], ["?", "?", "?"], ["GRADE: P", "GRADE: C", "GRADE: I"]]
    basic = {"scorer": "model_graded_qa", "completion": "said", "target": "criterion"}
    one = [
        {**basic, "graders": [reply], "args": {"partial_credit": partial}, "scorer": scorer}
        for reply in replies
        for partial in (False, True)
        for scorer in ("model_graded_qa", "model_graded_fact")
    ]
    several = [
        {**basic, "graders": panel, "args": {"reducer": reducer, "partial_credit": True}}
        for panel in panels
        for reducer in ("majority", "mean", "mode", "max")
    ]
    replies = ["S: 1, S: 2", "S: correct", "S: c", "s: 1"]
    own = [{**basic, "graders": [reply], "args": {"grade_pattern": r"S: (\w+)"}} for reply in replies]
    return one + several + own


def our_score(one: dict[str, Any]) -> Any:
    state = TaskState(
        model="mock/model",
        sample_id=1,
        epoch=1,
        input="Q?",
        messages=[ChatMessageUser(content="Q?")],
        choices=one.get("choices"),
        output=ModelOutput.from_content("mock/model", one["completion"]),
    )
    if one.get("shuffle") is not None:
        state.choices.shuffle(random.Random(one["shuffle"]))
    for index in one.get("chosen", []):
        state.choices.mark_choice(index, True)
    args = dict(one.get("args", {}))

    async def score() -> Any:
        if "graders" in one:
            graders = [get_model("mock/grader", memoize=False, custom_outputs=[reply]) for reply in one["graders"]]
            args["model"] = graders if len(graders) > 1 else graders[0]
        return await getattr(proctor.scorer, one["scorer"])(**args)(state, Target(one["target"]))

    found = anyio.run(score) if "graders" in one else _at_once(score())
    return {name: getattr(found, name) for name in ("value", "answer", "explanation", "reason")}


def _at_once(coroutine: Any) -> Any:
    with pytest.raises(StopIteration) as stop:
        coroutine.send(None)
    return stop.value.value


# What stands in these cases is explained in our own words.
OWN_WORDS = ("Scoring pattern not matched", "Choices were shuffled", "Grade not found")


def told_apart(one: dict[str, Any]) -> bool:
    """Whether a case is one of the two in which we differ on purpose.

    To the peer a blank target stands in every answer, and so does, for ``match``, a target of punctuation or currency
    signs alone, since both are stripped: any answer is correct. We leave the first unscored and take the second as it
    is.
    """
    targets = [one["target"]] if isinstance(one["target"], str) else one["target"]
    if one["scorer"] == "match":
        stripped = string.punctuation + "£€"
        return any(not "".join(char for char in target if char not in stripped).strip() for target in targets)
    return one["scorer"] != "choice" and any(not target.strip() for target in targets)


@pytest.mark.parametrize(
    "cases",
    [random_cases(3000), number_cases(), answer_cases(), choice_cases(), graded_cases()],
    ids=["random", "numbers", "answers", "choices", "graded"],
)
def test_the_same_answers_get_the_same_scores(
    ask_peer: Callable[..., list[Any]], same: Callable[[Any, Any], bool], cases: list[dict[str, Any]]
) -> None:
    different = []
    cases = [one for one in cases if not told_apart(one)]
    for one, theirs in zip(cases, ask_peer("score", cases), strict=True):
        mine = our_score(one)
        if str(theirs.get("explanation")).startswith(OWN_WORDS):
            theirs["explanation"] = mine["explanation"]
        if not same(mine, theirs):
            different.append((one, mine, theirs))
    assert different == []

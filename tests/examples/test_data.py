"""The script that made the data refuses what it does not understand."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

HEAD = "The following are multiple choice questions (with answers) about x.\n\n"
GOOD = "Q: How many?\n(A) one (B) two (C) three (D) four\nA: Let's think step by step. Two. The answer is (B).\n\n"


@pytest.fixture
def make(example: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = example("data/make")
    monkeypatch.setattr(module, "REPAIRS", ())
    return module


def test_a_question_is_its_parts(make: ModuleType) -> None:
    [row] = make.mmlu_questions({"x": HEAD + GOOD})

    assert row == {
        "id": "x-1",
        "subject": "x",
        "question": "How many?",
        "A": "one",
        "B": "two",
        "C": "three",
        "D": "four",
        "answer": "B",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD, "no questions"),
        (HEAD + GOOD.replace("(A) one ", ""), "not a question"),
        (HEAD + GOOD.replace("The answer is (B).", ""), "not a question"),
        (HEAD + GOOD.replace(" (C) three", ""), "options A/B/D"),
        (HEAD + GOOD.replace("(B).", "(E)."), "with the answer E"),
        (HEAD + GOOD.replace("How many?", "What is \x0crac{1}{2}?"), "damaged"),
        (HEAD + GOOD.replace("How many?", "What is\nactorial{n}?"), "damaged"),
        (HEAD + GOOD.replace("one", " "), "not a question|empty"),
    ],
)
def test_what_cannot_be_parsed_is_an_error(make: ModuleType, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        list(make.mmlu_questions({"x": text}))


def test_a_repair_that_fits_nothing_is_an_error(make: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "REPAIRS", (("x", "How many?", "How much?"), ("y", "a", "b")))

    rows = make.mmlu_questions({"x": HEAD + GOOD})

    assert next(rows)["question"] == "How much?"
    with pytest.raises(ValueError, match="fit nothing"):
        next(rows)


def test_subjects_take_turns(make: ModuleType) -> None:
    rows = [{"subject": subject, "id": f"{subject}{number}"} for subject in "ab" for number in (1, 2)]

    assert [row["id"] for row in make.interleaved([*rows, {"subject": "c", "id": "c1"}])] == [
        "a1",
        "b1",
        "c1",
        "a2",
        "b2",
    ]


def test_data_of_an_unknown_name_are_not_made(make: ModuleType) -> None:
    with pytest.raises(SystemExit, match="known: mmlu_dev, human_eval, bfcl"):
        make.main(["mmlu"])


@pytest.mark.parametrize("name", ["mmlu_dev", "human_eval", "bfcl"])
def test_every_file_has_its_licence_beside_it(make: ModuleType, name: str) -> None:
    text = (make.HERE / f"{name}.LICENSE").read_text(encoding="utf-8")

    assert "MIT" in text or "Apache License" in text

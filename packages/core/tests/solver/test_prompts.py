"""Solvers that write messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import a_state, generate_with, scripted, turns

from proctor.contracts import UsageError
from proctor.schema import ChatMessageSystem, ChatMessageUser
from proctor.solver import (
    Solver,
    TaskState,
    assistant_message,
    chain,
    chain_of_thought,
    fill,
    prompt_template,
    self_critique,
    system_message,
    user_message,
)

pytestmark = pytest.mark.anyio

METADATA = {"name": "N", "prompt": "not this", "many": {"key": "K"}}


async def solved(solver: Solver, state: TaskState) -> list[tuple[str, str]]:
    return turns(await solver(state, generate_with(scripted())))


@pytest.mark.parametrize(
    ("template", "params", "filled"),
    [
        ("{name} {p} {missing}", {"p": "P"}, "N P {missing}"),
        ("{name}", {"name": "mine"}, "mine"),
        ("{s}", {}, "S"),
        ("{both}", {}, "store"),
        ('{"a": 1} {} {0} {name}', {}, '{"a": 1} {} {0} N'),
        ("{{name}} {name!r} {name:>3} {name.gone} {many[key]}", {}, "{name} 'N'   N {name.gone} K"),
        ("lone } { {name}", {}, "lone } { N"),
    ],
)
async def test_templates_are_filled_from_parameters_store_and_metadata(
    template: str, params: dict[str, Any], filled: str
) -> None:
    state = a_state(metadata={**METADATA, "both": "metadata"}, store={"s": "S", "both": "store"})
    assert (await solved(system_message(template, **params), state))[0] == ("system", filled)


@given(st.text())
def test_any_text_is_a_template(text: str) -> None:
    assert isinstance(fill(text, prompt="x"), str)


@given(st.text(alphabet=st.characters(exclude_characters="{}")))
def test_text_without_braces_stays_as_it_is(text: str) -> None:
    assert fill(text, prompt="x") == text


async def test_a_template_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "system.txt"
    file.write_text("from a file, {name}", encoding="utf-8")
    assert (await solved(system_message(str(file)), a_state(metadata=METADATA)))[0][1] == "from a file, N"


async def test_system_messages_follow_those_that_are_there() -> None:
    state = a_state([ChatMessageUser(content="u1"), ChatMessageSystem(content="s1"), ChatMessageUser(content="u2")])
    after = await solved(chain(system_message("s2"), system_message("s3")), state)
    assert [text for _, text in after] == ["u1", "s1", "s2", "s3", "u2"]
    assert (await solved(system_message("first"), a_state()))[0] == ("system", "first")


async def test_user_and_assistant_messages_are_appended() -> None:
    after = await solved(chain(user_message("u {name}"), assistant_message("a {name}")), a_state(metadata=METADATA))
    assert after == [("user", "question"), ("user", "u N"), ("assistant", "a N")]


async def test_a_prompt_template_rewrites_the_prompt() -> None:
    after = await solved(prompt_template("Q: {prompt} {name}"), a_state("the {name}", metadata=METADATA))
    assert after == [("user", "Q: the {name} N")]


async def test_chain_of_thought_asks_for_reasons_and_an_answer_line() -> None:
    [(_, text)] = await solved(chain_of_thought(), a_state("2 + 2?"))
    assert text.startswith("2 + 2?\n")
    assert "step by step" in text and "ANSWER: $ANSWER" in text
    assert await solved(chain_of_thought("{prompt} {name}"), a_state(metadata=METADATA)) == [
        ("user", "question {name}")
    ]


@pytest.mark.parametrize("template", ["Answer!", 'Reply with {"a": 1}', "Be {tone}.", "lone } { {tone}"])
async def test_a_prompt_template_that_is_the_same_for_all_samples_is_warned_of(template: str) -> None:
    with pytest.warns(UserWarning, match=r"leaves the question of every sample out: its template has no \{prompt\}"):
        prompt_template(template, tone="brief")


async def test_a_prompt_template_without_the_prompt_may_take_the_question_from_metadata() -> None:
    made = prompt_template("{name} {gone}")
    assert await solved(made, a_state(metadata=METADATA)) == [("user", "N {gone}")]
    assert await solved(made, a_state(store={"gone": "G"})) == [("user", "{name} G")]
    with pytest.raises(UsageError, match=r"no \{prompt\}, and none of its names \(gone, name\) .* sample 1"):
        await solved(made, a_state())


async def test_chain_of_thought_needs_a_place_for_the_question() -> None:
    with pytest.raises(UsageError, match=r"must contain \{prompt\}"):
        chain_of_thought("Think of {question}!")


async def test_a_critique_without_the_answer_is_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"does not show the critic the answer: its template has no \{completion\}"):
        self_critique(critique_template="What of {question}?")
    with pytest.warns(UserWarning, match=r"does not show the model the critique"):
        self_critique(completion_template="Again: {question}")

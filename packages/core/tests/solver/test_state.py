"""The state of a sample."""

from __future__ import annotations

import random
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from scripted_model import a_state

from proctor.limits import LimitExceededError, SampleLimits, use_limits
from proctor.log import Store, StoreModel, store, use_store
from proctor.schema import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentImage,
    ContentText,
    Sample,
)
from proctor.solver import Choices, Target, answer_character, answer_index, state_from_sample


def test_a_state_starts_with_what_the_sample_says() -> None:
    sample = Sample("2 + 2?", choices=["4", "5"], target=["A", "B"], metadata={"level": 1}, id="x")
    state = state_from_sample(sample, model="openai/gpt/x", sample_id="x", epoch=2)
    assert (state.input, state.input_text, state.user_prompt.text) == ("2 + 2?", "2 + 2?", "2 + 2?")
    assert (state.model, state.model.api, state.model.name) == ("openai/gpt/x", "openai", "gpt/x")
    assert (state.sample_id, state.epoch, state.metadata, state.completed) == ("x", 2, {"level": 1}, False)
    assert (list(state.target), state.target.text) == (["A", "B"], "AB")
    assert [choice.value for choice in state.choices] == ["4", "5"]
    assert state.messages[0].source == "input"
    assert state.output.empty and state.output.completion == ""


def test_a_state_shares_nothing_with_its_sample() -> None:
    sample = Sample([ChatMessageUser(content="q")], metadata={"list": [1]})
    one = state_from_sample(sample, model="m/x", sample_id=1, epoch=1)
    one.user_prompt.text = "changed"
    one.metadata["list"].append(2)
    two = state_from_sample(sample, model="m/x", sample_id=1, epoch=2)
    assert two.user_prompt.text == "q"
    assert two.metadata == {"list": [1]}


def test_the_prompt_is_the_last_user_message() -> None:
    state = a_state(
        [
            ChatMessageUser(content="first"),
            ChatMessageAssistant(content="a"),
            ChatMessageUser(content=[ContentImage(image="x.png"), ContentText(text="last")]),
        ]
    )
    assert state.input_text == "last"
    state.user_prompt.text = "new"
    assert state.user_prompt.text == "new"
    with pytest.raises(ValueError, match=r"no user message in the conversation .*system"):
        _ = a_state([ChatMessageSystem(content="s")]).user_prompt


def test_every_message_gets_an_id_of_its_own() -> None:
    state = a_state()
    state.messages.append(ChatMessageUser(content="1"))
    state.messages += [ChatMessageUser(content="2")]
    state.messages.insert(0, ChatMessageSystem(content="3"))
    state.messages[1] = ChatMessageUser(content="4")
    state.messages = [*state.messages, ChatMessageUser(content="5")]
    ids = [message.id for message in state.messages]
    assert len(ids) == 5 and len(set(ids)) == 5
    assert all(isinstance(id, str) and len(id) == 22 for id in ids)


def test_the_message_limit_holds_for_a_solver_that_talks_by_itself() -> None:
    state = a_state()
    with use_limits(SampleLimits(message_limit=2)):
        state.messages.append(ChatMessageUser(content="second"))
        with pytest.raises(LimitExceededError):
            state.messages.append(ChatMessageUser(content="third"))
        with pytest.raises(LimitExceededError):
            state.messages.extend([ChatMessageUser(content="third")])
    assert len(state.messages) == 2


class Level(BaseModel):
    level: int


class Progress(StoreModel):
    steps: int = 0


def test_metadata_and_store_can_be_read_as_models() -> None:
    state = a_state(metadata={"level": 3}, store={"k": "v"})
    assert state.metadata_as(Level).level == 3
    with pytest.raises(ValidationError):
        a_state().metadata_as(Level)
    state.store_as(Progress).steps += 1
    assert state.store_as(Progress).steps == 1
    assert state.store.get("k") == "v"
    assert store().get("Progress:steps") is None


def test_a_state_may_use_the_sample_s_own_store() -> None:
    with use_store(Store()) as current:
        state = a_state(store=current)
        assert state.store is current


def test_a_copy_shares_nothing_but_the_tools() -> None:
    state = a_state(metadata={"a": [1]}, choices=["x", "y"], store={"k": [1]})
    copy = deepcopy(state)
    copy.messages[0].text = "other"
    copy.metadata["a"].append(2)
    copy.store.get("k").append(2)
    copy.choices.mark_choice(0, True)
    copy.output.completion = "o"
    assert state.user_prompt.text == "question"
    assert (state.metadata, state.store.get("k"), state.choices[0].correct) == ({"a": [1]}, [1], None)
    assert state.output.completion == ""


def test_targets_are_sequences_of_text() -> None:
    assert Target("abc")[0] == "abc"
    assert (len(Target()), Target().text, len(Target([]))) == (1, "", 0)
    assert Target("a") == Target(["a"]) != Target("b")
    assert hash(Target("a")) == hash(Target(["a"]))


@given(st.integers(0, 200))
def test_names_of_choices_can_be_read_back(index: int) -> None:
    assert answer_index(answer_character(index)) == index
    assert answer_index(answer_character(index).lower()) == index


@pytest.mark.parametrize("name", ["", "AB", "0", "-", "é"])
def test_what_names_no_choice_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a choice"):
        answer_index(name)


@given(st.lists(st.text(), max_size=30), st.integers())
def test_shuffled_choices_know_where_they_come_from(values: list[str], seed: int) -> None:
    choices = Choices(values)
    choices.shuffle(random.Random(seed))
    assert [values[choice.original_position] for choice in choices] == [choice.value for choice in choices]
    assert sorted(choice.original_position for choice in choices) == list(range(len(values)))


def test_choices_are_written_out_with_their_names() -> None:
    choices = Choices(["red", "blue"])
    assert choices.prompt("Q?", "{question}|{choices}|{letters}") == "Q?|A) red\nB) blue|A,B"
    assert list(Choices([])) == []
    assert choices.prompt("{letters}", "{question}") == "{letters}"

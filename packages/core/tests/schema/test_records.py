from __future__ import annotations

import json
import math

import pytest
from pydantic import TypeAdapter, ValidationError

from proctor.schema import (
    ChatMessageUser,
    ContentImage,
    ContentText,
    EvalSample,
    GenerateConfig,
    InfoEvent,
    ModelOutput,
    ModelUsage,
    Sample,
    Score,
    UnknownContent,
    UnknownEvent,
    quick_id,
    short_uuid,
)


def _sample(**fields: object) -> dict[str, object]:
    return {"id": 1, "epoch": 1, "input": "q", "target": "a", **fields}


def test_fields_events_and_content_that_are_not_known_survive_a_round_trip() -> None:
    data = _sample(
        new_field={"x": None},
        input=[{"role": "user", "content": [{"type": "hologram", "depth": 3}]}],
        events=[{"event": "teleport", "to": "here"}, {"event": "info", "data": None, "extra": 1}],
    )
    sample = EvalSample.model_validate(data)
    assert isinstance(sample.input[0].content[0], UnknownContent)  # type: ignore[union-attr]
    assert isinstance(sample.events[0], UnknownEvent) and isinstance(sample.events[1], InfoEvent)
    back = json.loads(sample.model_dump_json(exclude_none=True))
    assert back["new_field"] == {"x": None}
    assert back["input"][0]["content"][0] == {"type": "hologram", "depth": 3}
    assert back["events"][0]["to"] == "here" and back["events"][1]["extra"] == 1


def test_nan_and_infinities_are_written_bare() -> None:
    assert '"value":NaN' in Score(value=math.nan).model_dump_json()
    assert Score.model_validate_json('{"value":-Infinity}').value == -math.inf


def test_a_trusted_record_is_what_a_validated_one_is() -> None:
    lists = {"messages": [], "output": ModelOutput(), "metadata": {}, "store": {}, "events": [], "attachments": {}}
    usage = {"model_usage": {}, "role_usage": {}}
    fields = {"id": 1, "epoch": 2, "input": "q", "target": "a", **lists, **usage}
    trusted, validated = EvalSample.trusted(**fields), EvalSample(**fields)  # type: ignore[arg-type]
    assert trusted.model_dump() == validated.model_dump()
    assert list(trusted.__dict__) == list(EvalSample.model_fields)
    assert trusted.model_dump_json(exclude_none=True) == validated.model_dump_json(exclude_none=True)
    assert trusted.model_copy(update={"id": 3}).id == 3


def test_text_of_a_message_is_its_text_parts_and_can_be_replaced() -> None:
    message = ChatMessageUser(content=[ContentText(text="a"), ContentImage(image="x.png"), ContentText(text="b")])
    assert message.text == "a\nb"
    message.text = "c"
    assert [part.type for part in message.content] == ["text", "image"]  # type: ignore[union-attr]
    assert message.text == "c"


def test_settings_merge_by_what_is_said() -> None:
    base = GenerateConfig(temperature=0.0, max_tokens=5)
    merged = base.merge(GenerateConfig(max_tokens=7))
    assert (merged.temperature, merged.max_tokens) == (0.0, 7)
    assert base.max_tokens == 5
    assert base.merge(GenerateConfig()) is base


def test_a_sample_refuses_fields_it_does_not_have() -> None:
    with pytest.raises(ValidationError, match="targt"):
        Sample(input="q", targt="a")
    assert Sample("q", sandbox="docker").sandbox.type == "docker"  # type: ignore[union-attr]
    assert Sample("q", sandbox=("docker", "compose.yaml")).sandbox.config == "compose.yaml"  # type: ignore[union-attr]


def test_score_values_become_numbers() -> None:
    assert [Score(value=value).as_float() for value in ("C", "I", "P", "N", "0.25", True, 3)] == [
        1,
        0,
        0.5,
        0,
        0.25,
        1,
        3,
    ]
    with pytest.raises(ValueError, match="not one number"):
        Score(value=[1, 2]).as_float()


def test_types_of_values_are_kept() -> None:
    values = TypeAdapter(list[Score]).validate_json('[{"value":1},{"value":true},{"value":1.0},{"value":"1"}]')
    assert [type(score.value) for score in values] == [int, bool, float, str]


def test_usage_adds_up() -> None:
    total = ModelUsage(input_tokens=1, total_tokens=1) + ModelUsage(input_tokens=2, total_tokens=2, reasoning_tokens=4)
    assert (total.input_tokens, total.reasoning_tokens, total.total_cost) == (3, 4, None)
    total.accumulate(ModelUsage(total_cost=0.5, total_tokens=1))
    assert (total.total_cost, total.total_tokens) == (0.5, 4)


def test_identifiers_have_22_characters_and_differ() -> None:
    for make in (short_uuid, quick_id):
        made = {make() for _ in range(1000)}
        assert len(made) == 1000 and {len(each) for each in made} == {22}


def test_a_sample_under_another_id_shares_its_values_and_leaves_the_first_as_it_is() -> None:
    sample = Sample("question", target=["a", "b"], metadata={"level": 3}, sandbox=("docker", "compose.yaml"))

    other = sample.with_id("x")

    assert (other.id, sample.id) == ("x", None)
    assert other.metadata is sample.metadata
    assert other == sample.model_copy(update={"id": "x"})
    assert other.model_copy(update={"id": None}) == sample


def test_a_sample_of_a_class_of_its_own_keeps_what_that_has_beside_its_fields() -> None:
    class Tagged(Sample):
        _tag: str = "kept"

    other = Tagged("question").with_id(7)

    assert (type(other), other.id, other._tag) == (Tagged, 7, "kept")

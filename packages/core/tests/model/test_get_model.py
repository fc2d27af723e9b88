"""From a name to a model."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.contracts import UsageError
from proctor.model import GenerateConfig, MockArgs, Model, close_models, get_model, use_models


def test_a_name_has_a_provider() -> None:
    for name in ("gpt-4o", "/gpt-4o", "mock/"):
        with pytest.raises(UsageError, match="provider/model, for example openai/gpt-4o-mini"):
            get_model(name)


def test_an_unknown_provider_names_the_close_match() -> None:
    with pytest.raises(UsageError, match="mock"):
        get_model("mokc/model")


def test_an_unknown_argument_is_refused() -> None:
    with pytest.raises(UsageError, match="latency"):
        get_model("mock/model", latencie=1)


def test_the_name_is_split_at_the_first_slash() -> None:
    model = get_model("mock/meta/llama")

    assert model.name == "mock/meta/llama"
    assert str(model) == model.name
    assert model.api.model_name == "meta/llama"


def test_without_a_name_there_must_be_one_to_fall_back_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--model"):
        get_model()

    monkeypatch.setenv("PROCTOR_EVAL_MODEL", "mock/a,mock/b")
    assert get_model().name == "mock/a"


def test_the_model_under_evaluation_is_the_default() -> None:
    model = get_model("mock/model")

    with use_models(model):
        assert get_model() is model
        assert get_model(model) is model
        graded = get_model(role="grader")

    assert (graded.name, graded.role) == ("mock/model", "grader")
    assert graded.api is model.api


def test_a_role_is_played_by_whom_the_run_says() -> None:
    grader = get_model("mock/grader", role="grader")

    with use_models(get_model("mock/model"), {"grader": grader}):
        assert get_model(role="grader", default="mock/other") is grader
        assert get_model(role="critic", default="mock/other").name == "mock/other"
        assert get_model(role="critic", default="mock/other").role == "critic"


def test_equal_arguments_give_the_same_model() -> None:
    assert get_model("mock/model") is get_model("mock/model")
    assert get_model("mock/model", latency=0.5) is get_model("mock/model", latency=0.5)
    assert get_model("mock/model", latency=0.5) is not get_model("mock/model")
    assert get_model("mock/model", config=GenerateConfig(seed=1)) is not get_model("mock/model")
    assert get_model("mock/model", base_url="http://127.0.0.1:1") is not get_model("mock/model")
    assert get_model("mock/model", memoize=False) is not get_model("mock/model")


@pytest.mark.anyio
async def test_models_are_remembered_per_event_loop_until_they_are_closed() -> None:
    model = get_model("mock/model")

    assert get_model("mock/model") is model
    await close_models()
    assert get_model("mock/model") is not model
    await close_models()


def test_keys_are_found_before_the_provider_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Record:
        name = "keyed"
        args = MockArgs
        env = (("KEYED_ID", "KEYED_SECRET"), ("KEYED_TOKEN",))
        max_connections = 7

        @staticmethod
        def factory(*args: Any, **kwargs: Any) -> Any:
            made.append(kwargs)
            return get_model("mock/model").api

    monkeypatch.setattr("proctor.plugins.get", lambda kind, name: Record() if name == "keyed" else None)
    with pytest.raises(UsageError, match=r"KEYED_SECRET.*or KEYED_TOKEN"):
        get_model("keyed/m")
    assert made == []


def test_a_key_given_in_code_shows_nowhere() -> None:
    model = get_model("mock/model", api_key="secret-key-123")

    assert isinstance(model, Model)
    assert "secret-key-123" not in f"{model!r} {vars(model)} {vars(model.api)}"

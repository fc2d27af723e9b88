"""From a name to a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from proctor import plugins
from proctor.contracts import UsageError
from proctor.model import (
    GenerateConfig,
    MockAPI,
    MockArgs,
    Model,
    close_models,
    get_model,
    make_model,
    run_models,
    use_models,
)


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


def test_an_argument_may_have_any_name() -> None:
    names = ("base_url", "role", "config", "memoize", "default", "api_key", "name", "args")

    for name in names:
        with pytest.raises(UsageError, match=f"-M {name}=...: 'mock' has no argument '{name}'"):
            make_model("mock/model", {name: "x"})


def test_settings_asked_for_in_a_sample_hold_for_the_model_under_evaluation() -> None:
    model = get_model("mock/model", config=GenerateConfig(temperature=1.0, seed=1))

    with use_models(model):
        cold = get_model(config=GenerateConfig(temperature=0.0))
        default = get_model(default=model, config={"seed": 2})

    assert (cold.config.temperature, cold.config.seed) == (0.0, 1)
    assert cold.api is model.api
    assert default.config.seed == 2
    assert model.config.temperature == 1.0


def test_a_model_that_is_given_gets_the_role_and_the_settings() -> None:
    model = get_model("mock/model", config=GenerateConfig(seed=1))

    grader = get_model(model, role="grader", config=GenerateConfig(temperature=0.0))

    assert (grader.role, grader.config.seed, grader.config.temperature) == ("grader", 1, 0.0)
    assert get_model(model, role="grader").api is model.api
    assert get_model(grader, role="grader") is grader
    assert get_model(model) is model


def test_what_the_run_says_of_a_role_goes_before_what_the_code_says() -> None:
    grader = get_model("mock/grader", role="grader", config=GenerateConfig(temperature=0.5))

    with use_models(get_model("mock/model"), {"grader": grader}):
        asked = get_model(role="grader", config=GenerateConfig(temperature=0.0, seed=7))

    assert (asked.name, asked.role, asked.config.temperature, asked.config.seed) == ("mock/grader", "grader", 0.5, 7)


def test_forms_of_a_model_count_their_retries_together() -> None:
    model = get_model("mock/model", memoize=False)
    cold = model.with_config(GenerateConfig(temperature=0.0))

    cold.count_retry("transient")
    cold.note_error(ConnectionError("refused"))

    assert model.retries == cold.retries == {"transient": 1}
    assert model.last_error == "ConnectionError: refused"


def test_a_form_that_counts_apart_begins_anew() -> None:
    model = get_model("mock/model", memoize=False)
    model.count_retry("transient")
    apart = model.with_config(GenerateConfig(), counts_apart=True)

    apart.count_retry("rate_limit")

    assert (model.retries, apart.retries) == ({"transient": 1}, {"rate_limit": 1})


class Closing(MockAPI):
    """Counts how often it is closed."""

    closed = 0

    async def aclose(self) -> None:
        self.closed += 1


@pytest.fixture
def closing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider ``mock`` gives models that count."""
    record = plugins.get("model_providers", "mock")
    counting = replace(record, factory=lambda name, **given: Closing(name, args=given["args"]))
    monkeypatch.setattr("proctor.plugins.get", lambda kind, name: counting)


def closed(*models: Model) -> list[int]:
    return [model.api.closed for model in models]  # type: ignore[attr-defined]  # all of them are Closing


@pytest.mark.anyio
@pytest.mark.usefixtures("closing")
async def test_a_run_closes_its_own_models_and_no_other_run_s() -> None:
    before = get_model("mock/model")
    with run_models():
        first = get_model("mock/model")
        assert get_model("mock/model") is first is not before
        with run_models():
            second = get_model("mock/model")
            await close_models()
            assert closed(before, first, second) == [0, 0, 1]
        await close_models()
        assert closed(before, first, second) == [1, 1, 1]
    await close_models()


@pytest.mark.anyio
@pytest.mark.usefixtures("closing")
async def test_a_model_that_two_runs_were_given_is_closed_by_the_last() -> None:
    model = get_model("mock/model", memoize=False)
    with run_models():
        get_model(model)
        with run_models():
            get_model(model, role="grader")
            await close_models()
        assert closed(model) == [0]
        await close_models()
    assert closed(model) == [1]


@pytest.mark.anyio
@pytest.mark.usefixtures("closing")
async def test_one_model_that_can_t_be_closed_keeps_no_other_open(monkeypatch: Any, caplog: Any) -> None:
    with run_models():
        stuck, other = get_model("mock/stuck"), get_model("mock/other")

        async def fail() -> None:
            raise OSError("broken")

        monkeypatch.setattr(stuck.api, "aclose", fail)
        await close_models()

    assert closed(other) == [1]
    assert "mock/stuck could not be closed" in caplog.text

"""Settings and addresses that are refused, and in which words."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.contracts import UsageError
from proctor.model import GenerateConfig, check_base_url, generation_settings, get_model


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"temperature": "hot"}, "the role has temperature='hot', which is not a number"),
        ({"max_tokens": 1.5}, "the role has max_tokens=1.5, which is not a whole number"),
        ({"logprobs": "perhaps"}, "the role has logprobs='perhaps', which is not true or false"),
        ({"stop_seqs": "x"}, "the role has stop_seqs='x', which is not a list"),
        ({"stop_seqs": ["x", 3]}, "the role has stop_seqs.1=3, which is not text"),
        ({"system_message": 3}, "the role has system_message=3, which is not text"),
        ({"reasoning_history": "some"}, "the role has reasoning_history='some', which is none of 'none', 'all'"),
        ({"response_schema": 3}, "the role has response_schema=3, which"),
        ({"temprature": 1}, "the role has a generation setting 'temprature', which does not exist: did you mean 'temp"),
        ({"extra_headers": {"x-key": 3}}, "the role has extra_headers.x-key=..., which is not text"),
        ({"seed": "x" * 500}, "x..., which is not a whole number"),
        (3, "the role has 3 for its generation settings: give a GenerateConfig"),
        (GenerateConfig.model_validate({"top": 1}), "the role has a generation setting 'top'"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_sentence(settings: Any, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        generation_settings(settings, "the role")

    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_right_settings_are_taken_as_they_are() -> None:
    config = GenerateConfig(seed=1)

    assert generation_settings(config, "x") is config
    assert generation_settings({"seed": 1}, "x") == config
    assert generation_settings(None, "x") == GenerateConfig()


def test_get_model_refuses_wrong_settings_and_names() -> None:
    with pytest.raises(UsageError, match=r"get_model\(\) has temperature='hot', which is not a number"):
        get_model("mock/model", config={"temperature": "hot"})
    with pytest.raises(UsageError, match="named provider/model"):
        get_model(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost",
        "http://127.0.0.1:8000/v1",
        "https://api.example.com/v1/",
        "HTTPS://EXAMPLE.COM",
        "http://[::1]:8080/v1",
        "http://user:pw@host/v1",
        "http://host_with_underscore:1/v1",
        "http://münchen.example/v1",
        "",
        None,
    ],
)
def test_addresses(url: str | None) -> None:
    assert check_base_url(url, "--model-base-url", ("http", "https")) == url


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("notaurl", "for example https://host/v1"),
        ("localhost:8000/v1", "for example http://localhost:8000/v1"),
        ("api.example.com/v1", "for example http://api.example.com/v1"),
        ("/v1", "must begin with http:// or https://"),
        ("//host/v1", "must begin with http:// or https://"),
        ("http:/host/v1", "must begin with http:// or https://"),
        ("http://", "Write scheme, host"),
        ("http:///v1", "Write scheme, host"),
        ("http://:8000", "Write scheme, host"),
        ("http://host:port/v1", "Write scheme, host"),
        ("http://host:99999/v1", "Write scheme, host"),
        ("http://host:0/v1", "Write scheme, host"),
        ("http://[::1/v1", "Write scheme, host"),
        ("http://a b/v1", "Write scheme, host"),
        ("http://host/v 1", "Write scheme, host"),
        (" http://host/v1", "Write scheme, host"),
        ("http://host/v1\n", "Write scheme, host"),
        ("ftp://host/v1", "begins with ftp://, but requests go by http or https"),
        ("http://me:secret@ho st", "'http://ho st'"),
        (3, "must be an address such as https://host/v1, not 3"),
    ],
)
def test_what_is_no_address_is_refused(url: Any, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        check_base_url(url, "--model-base-url", ("http", "https"))

    assert said in str(raised.value)
    assert str(raised.value).startswith("--model-base-url")
    assert "secret" not in str(raised.value)


@given(st.text() | st.from_regex(r"https?://.*", fullmatch=True))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert check_base_url(text) == text


def test_get_model_refuses_an_address_before_anything_is_sent() -> None:
    with pytest.raises(UsageError, match="base URL of mock/model"):
        get_model("mock/model", base_url="notaurl")

"""Addresses that no call can be made from are refused before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.contracts import UsageError


@pytest.mark.parametrize("name", ["openai/gpt-4o", "together/llama", "openai-api/acme/llama", "azureai/gpt-4o"])
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("notaurl", "--model-base-url='notaurl' is no address"),
        ("ftp://host/v1", "requests go by http or https"),
        ("http://host:port/v1", "is no address"),
        ("https://host/v1?api-version=1", "has a query: give the address without it"),
        ("https://me:secret@host/v1#part", "--model-base-url='https://host/v1#part' has a query"),
        ("https://host/v1/chat/completions/", "is the address of one call: leave /chat/completions off"),
        ("https://host/v1/responses", "is the address of one call: leave /responses off"),
    ],
)
def test_a_wrong_address_is_refused(api: Any, name: str, address: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        api(None, name, base_url=address)

    assert said in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai/gpt-4o", "OPENAI_BASE_URL"),
        ("together/llama", "TOGETHER_BASE_URL"),
        ("openai-api/acme/llama", "ACME_BASE_URL"),
        ("azureai/gpt-4o", "AZURE_OPENAI_ENDPOINT"),
    ],
)
def test_a_wrong_address_in_the_environment_is_refused_by_its_variable(
    api: Any, monkeypatch: pytest.MonkeyPatch, name: str, variable: str
) -> None:
    monkeypatch.setenv(variable, "localhost:8000/v1")

    with pytest.raises(UsageError, match=f"{variable}='localhost:8000/v1' .*for example http://localhost:8000/v1"):
        api(None, name)


def test_an_empty_variable_says_nothing(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "")

    assert api(None, "openai/gpt-4o").base_url == "https://api.openai.com/v1"

"""Region, address and credentials: who said them, and what is said when they are missing."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from proctor.contracts import PrerequisiteError, UsageError
from proctor.model import get_model
from proctor_testkit import FakeBedrock

PROFILE = "arn:aws:bedrock:us-west-2:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config"
    file.write_text(
        "[default]\nregion = ap-south-1\n"
        "[profile evals]\nregion = eu-west-3\naws_access_key_id = AKIAEVALS\naws_secret_access_key = s\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))


@pytest.mark.parametrize(
    ("model", "args", "env", "region", "source"),
    [
        (PROFILE, {"region": "us-east-2", "profile": "evals"}, {"AWS_REGION": "eu-west-1"}, "us-east-2", "-M region"),
        (PROFILE, {"profile": "evals"}, {"AWS_REGION": "eu-west-1"}, "us-west-2", "the model's ARN"),
        ("m", {}, {"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"}, "eu-west-1", "AWS_REGION"),
        ("m", {"profile": "evals"}, {"AWS_DEFAULT_REGION": "eu-west-2"}, "eu-west-2", "AWS_DEFAULT_REGION"),
        ("m", {"profile": "evals"}, {}, "eu-west-3", "the profile 'evals'"),
        ("m", {}, {"AWS_PROFILE": "evals"}, "eu-west-3", "the profile 'evals'"),
        ("m", {}, {}, "ap-south-1", "the profile 'default'"),
    ],
)
@pytest.mark.usefixtures("config")
def test_the_region_is_the_first_that_is_said(
    api: Any,
    model: str,
    args: dict[str, str],
    env: dict[str, str],
    region: str,
    source: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.delenv("AWS_REGION")
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    with caplog.at_level(logging.INFO, "proctor.provider.bedrock"):
        api(None, model, **args)

    assert f"region {region}, from {source}" in caplog.text


def test_a_missing_region_is_said_with_what_to_do(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")

    with pytest.raises(PrerequisiteError, match="say which AWS region: -M region=us-east-1"):
        api(None)


def test_a_region_that_is_none_is_refused(api: Any) -> None:
    with pytest.raises(UsageError, match="'us east' of -M region is no AWS region"):
        api(None, region="us east")


def test_missing_credentials_are_said_before_the_first_request() -> None:
    with pytest.raises(PrerequisiteError, match=r"there are no AWS credentials\. Set AWS_ACCESS_KEY_ID"):
        get_model("bedrock/us.amazon.nova-lite-v1:0", memoize=False)


def test_half_credentials_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAHALF")

    with pytest.raises(PrerequisiteError, match=r"no usable AWS credentials .*AWS_SECRET_ACCESS_KEY"):
        get_model("bedrock/us.amazon.nova-lite-v1:0", memoize=False)


def test_an_unknown_profile_is_said(api: Any) -> None:
    with pytest.raises(PrerequisiteError, match=r"\(nobody\) could not be found; -M profile names one"):
        api(None, profile="nobody")


@pytest.mark.usefixtures("config")
def test_models_of_one_account_and_region_share_connections_and_others_do_not(api: Any) -> None:
    one = api(None, "a", api_key=None, profile="evals")
    same = api(None, "b", api_key=None, profile="evals")
    elsewhere = api(None, "a", api_key=None, profile="evals", region="us-east-2")
    other = api(None, "a")

    assert one.connection_key() == same.connection_key()
    assert one._client is same._client
    assert len({one.connection_key(), elsewhere.connection_key(), other.connection_key()}) == 3


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["argument", "environment", "chain"])
async def test_each_kind_of_credentials_opens_the_service(
    server: FakeBedrock, api: Any, ask: Any, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEDROCK_BASE_URL", server.base_url)
    if how == "environment":
        monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bearer-123456")
    if how == "chain":
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-0123456789")

    await ask(api(None, api_key="given-123456" if how == "argument" else None))

    [sent] = [request.headers["authorization"] for request in server.requests]
    expected = {"argument": "Bearer given-123456", "environment": "Bearer bearer-123456"}
    assert sent == expected[how] if how in expected else sent.startswith("AWS4-HMAC-SHA256 Credential=AKIATEST/")

"""The fake Bedrock is one: boto3 itself talks to it, checks its streams, and is refused what Bedrock refuses."""

from __future__ import annotations

import contextlib
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.eventstream import ChecksumMismatch
from botocore.exceptions import ClientError, EventStreamError

from proctor_testkit import FakeBedrock

MODEL = "amazon.nova-lite-v1:0"
ASK = [{"role": "user", "content": [{"text": "?"}]}]


@pytest.fixture
def client(server: FakeBedrock, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    config = Config(retries={"total_max_attempts": 1})
    made = boto3.client("bedrock-runtime", region_name="us-east-1", endpoint_url=server.base_url, config=config)
    yield made
    made.close()


def test_converse(client: Any, server: FakeBedrock) -> None:
    server.say("Blue.", calls=[("add", {"x": 1})])

    reply = client.converse(modelId=MODEL, messages=ASK)

    text, call = reply["output"]["message"]["content"]
    assert text == {"text": "Blue."} and call["toolUse"]["input"] == {"x": 1}
    assert (reply["stopReason"], reply["usage"]["totalTokens"]) == ("tool_use", 30)
    assert server.models == [MODEL] and server.streamed == [False]


def test_converse_stream(client: Any, server: FakeBedrock) -> None:
    server.say("Blue, mostly.", reasoning="Hm.", signature="sig")

    events = list(client.converse_stream(modelId=MODEL, messages=ASK)["stream"])

    deltas = [event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event]
    assert "".join(delta.get("text", "") for delta in deltas) == "Blue, mostly."
    assert [next(iter(event)) for event in events][-2:] == ["messageStop", "metadata"]


def test_errors(client: Any, server: FakeBedrock) -> None:
    server.fail(429, headers={"retry-after": "2"})

    with pytest.raises(client.exceptions.ThrottlingException) as raised:
        client.converse(modelId=MODEL, messages=ASK)

    assert raised.value.response["ResponseMetadata"]["HTTPHeaders"]["retry-after"] == "2"
    assert len(server.requests) == 1


def test_an_exception_and_a_wrong_checksum_in_a_stream(client: Any, server: FakeBedrock) -> None:
    server.fail_in_stream("throttlingException", "Slow down.")
    server.corrupt()

    for error in (EventStreamError, ChecksumMismatch):
        with (
            contextlib.closing(client.converse_stream(modelId=MODEL, messages=ASK)["stream"]) as stream,
            pytest.raises(error),
        ):
            list(stream)


CALL = {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}
RESULT = {"toolResult": {"toolUseId": "b", "content": [{"text": "x"}]}}
TOOLS = {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}]}


@pytest.mark.parametrize(
    ("messages", "more", "said"),
    [
        ([{"role": "user", "content": [{"text": " "}]}], {}, "is blank"),
        (ASK, {"system": [{"text": " "}]}, "is blank"),
        ([{"role": "assistant", "content": [{"text": "x"}]}], {}, "start with a user message"),
        ([*ASK, *ASK], {}, "alternate"),
        ([{"role": "user", "content": []}], {}, "is empty"),
        ([*ASK, {"role": "assistant", "content": [CALL]}], {}, "toolConfig"),
        (
            [*ASK, {"role": "assistant", "content": [CALL]}, {"role": "user", "content": [RESULT]}],
            {"toolConfig": TOOLS},
            "do not fit",
        ),
    ],
)
def test_it_refuses_what_bedrock_refuses(client: Any, messages: Any, more: dict[str, Any], said: str) -> None:
    with pytest.raises(ClientError, match=said):
        client.converse(modelId=MODEL, messages=messages, **more)


def test_it_wants_a_signature(server: FakeBedrock) -> None:
    from botocore import UNSIGNED

    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=server.base_url,
        config=Config(signature_version=UNSIGNED),
    )

    with pytest.raises(ClientError, match="Missing Authentication Token"):
        client.converse(modelId=MODEL, messages=ASK)
    client.close()

"""Calls by the parts of the SDK send and raise what its client does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from proctor_provider_bedrock._direct import DirectCalls
from proctor_testkit import FakeBedrock

Send = Callable[[dict[str, Any]], dict[str, Any]]
ARN = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
# The SDK says of itself, of the attempt and of the time; a signature is of those, too.
OTHERS = ("user-agent", "amz-sdk-", "x-amz-date", "authorization", "x-amz-user-agent")


@pytest.fixture
def both(server: FakeBedrock, monkeypatch: pytest.MonkeyPatch) -> tuple[Send, Send]:
    """The SDK's own call of Converse, and the direct one, of the same client."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    session = boto3.Session()
    config = Config(retries={"total_max_attempts": 1})
    client = session.client("bedrock-runtime", region_name="us-east-1", endpoint_url=server.base_url, config=config)
    direct = DirectCalls(client, client._endpoint.http_session, session.get_credentials())
    return lambda request: client.converse(**request), lambda request: direct.send(request, {})


def headers(request: Any) -> dict[str, str]:
    lowered = {name.lower(): value for name, value in request.headers.items()}
    return {name: value for name, value in lowered.items() if not name.startswith(OTHERS)}


@pytest.mark.parametrize("model", ["us.amazon.nova-lite-v1:0", ARN])
def test_the_same_goes_over_the_wire_and_the_same_comes_back(
    model: str, both: tuple[Send, Send], server: FakeBedrock
) -> None:
    image = {"image": {"format": "png", "source": {"bytes": bytes(range(256))}}}
    said: dict[str, Any] = {
        "modelId": model,
        "messages": [{"role": "user", "content": [{"text": "Grüße, what is this?"}, image]}],
        "system": [{"text": "Be short."}],
        "inferenceConfig": {"maxTokens": 10, "temperature": 0.5},
        "additionalModelRequestFields": {"top_k": 5, "nested": {"a": [1, None, "x"]}},
    }
    replies = [send(said) for send in both]

    sdk, direct = server.requests
    assert (direct.path, direct.body) == (sdk.path, sdk.body)
    assert headers(direct) == headers(sdk)
    signed = [request.headers["authorization"].partition(" ")[2].split(", ")[0] for request in (sdk, direct)]
    assert signed[0] == signed[1] and signed[0].startswith("Credential=AKIDEXAMPLE/")
    for reply in replies:
        told = reply.pop("ResponseMetadata")
        assert (told["HTTPStatusCode"], bool(told["RequestId"])) == (200, True)
    assert replies[0] == replies[1]


@pytest.mark.parametrize("status", [400, 403, 429, 500, 503])
def test_the_same_is_raised(status: int, both: tuple[Send, Send], server: FakeBedrock) -> None:
    raised = []
    for send in both:
        server.fail(status)
        with pytest.raises(ClientError) as caught:
            send({"modelId": "m", "messages": [{"role": "user", "content": [{"text": "?"}]}]})
        raised.append(caught.value)

    sdk, direct = raised
    assert type(direct) is type(sdk)
    assert direct.response["Error"] == sdk.response["Error"]

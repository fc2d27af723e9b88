"""The fake server, judged by OpenAI's own client."""

from __future__ import annotations

import pytest

from proctor_testkit import FakeOpenAI

openai = pytest.importorskip("openai", exc_type=ImportError)

TOOL = {"name": "weather", "description": "Looks it up.", "parameters": {"type": "object", "properties": {}}}


@pytest.fixture
def client(server: FakeOpenAI) -> openai.OpenAI:
    with openai.OpenAI(api_key="k", base_url=server.base_url, max_retries=0) as client:
        yield client


def test_it_reads_a_chat_completion(server: FakeOpenAI, client: openai.OpenAI) -> None:
    server.say("Four.", logprobs=[("Four", -0.1)], usage={"cached": 8})
    server.say(calls=[("weather", {"city": "Bern"})])
    ask = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "?"}]}

    said = client.chat.completions.create(**ask)
    called = client.chat.completions.create(**ask, tools=[{"type": "function", "function": TOOL}])

    assert said.choices[0].message.content == "Four."
    assert said.choices[0].finish_reason == "stop"
    assert said.choices[0].logprobs.content[0].logprob == -0.1
    assert said.usage.prompt_tokens_details.cached_tokens == 8
    assert called.choices[0].finish_reason == "tool_calls"
    assert called.choices[0].message.tool_calls[0].function.arguments == '{"city": "Bern"}'
    said.model_validate(said.model_dump(), strict=True)


def test_it_reads_a_response(server: FakeOpenAI, client: openai.OpenAI) -> None:
    server.say("Four.", reasoning="Two and two.", calls=[("weather", {"city": "Bern"})])

    said = client.responses.create(model="o3", input="?", tools=[{"type": "function", "strict": False, **TOOL}])

    assert said.output_text == "Four."
    assert [item.type for item in said.output] == ["reasoning", "message", "function_call"]
    assert said.status == "completed"
    said.model_validate(said.model_dump(), strict=True)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (404, "NotFoundError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
    ],
)
def test_it_reads_an_error(server: FakeOpenAI, client: openai.OpenAI, status: int, error: str) -> None:
    server.fail(status, headers={"retry-after": "3"})

    with pytest.raises(getattr(openai, error)) as raised:
        client.chat.completions.create(model="m", messages=[])

    assert raised.value.response.headers["retry-after"] == "3"
    assert isinstance(raised.value.body, dict)


def test_an_azure_client_finds_its_paths(server: FakeOpenAI) -> None:
    with openai.AzureOpenAI(
        api_key="k", azure_endpoint=server.root_url, api_version="2024-10-21", max_retries=0
    ) as client:
        said = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "?"}])

    assert said.choices[0].message.content == "The answer is 4."
    assert server.requests[0].path == "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21"


def test_queued_steps_come_first_and_one_can_repeat(server: FakeOpenAI, client: openai.OpenAI) -> None:
    server.say("once")
    server.fail(500)
    server.always()

    assert client.chat.completions.create(model="m", messages=[]).choices[0].message.content == "once"
    for _ in range(3):
        with pytest.raises(openai.InternalServerError):
            client.chat.completions.create(model="m", messages=[])
    assert len(server.requests) == 4

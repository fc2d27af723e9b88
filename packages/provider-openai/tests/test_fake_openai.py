"""The fake server, judged by OpenAI's own client."""

from __future__ import annotations

import httpx2
import pytest

from proctor_testkit import FakeOpenAI, WaitForm

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


def test_it_streams_a_chat_completion(server: FakeOpenAI, client: openai.OpenAI) -> None:
    server.say("Four, I think.", calls=[("weather", {"city": "Bern"}), ("weather", {"city": "Rome"})])
    server.drip(0.0001)
    ask = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "?"}]}

    with client.chat.completions.stream(**ask, stream_options={"include_usage": True}) as stream:
        said = stream.get_final_completion()
    with client.chat.completions.stream(**ask) as stream:
        dripped = stream.get_final_completion()

    message = said.choices[0].message
    assert message.content == "Four, I think."
    assert [call.function.arguments for call in message.tool_calls] == ['{"city": "Bern"}', '{"city": "Rome"}']
    assert said.choices[0].finish_reason == "tool_calls"
    assert said.usage.total_tokens == 30
    assert dripped.choices[0].message.content == "The answer is 4."
    assert dripped.usage is None


def test_it_streams_a_response(server: FakeOpenAI, client: openai.OpenAI) -> None:
    server.say("Four, I think.", reasoning="Two and two.", calls=[("weather", {"city": "Bern"})])
    with client.responses.stream(model="o3", input="?") as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        said = stream.get_final_response()

    assert "".join(deltas) == said.output_text == "Four, I think."
    assert [item.type for item in said.output] == ["reasoning", "message", "function_call"]
    assert said.output[2].arguments == '{"city": "Bern"}'
    assert said.usage.total_tokens == 30


def test_a_stream_that_is_cut_or_goes_silent_is_an_error(server: FakeOpenAI, client: openai.OpenAI) -> None:
    server.break_off(3)
    server.break_off(3, stall=True)
    server.stall(halfway=True)
    ask = {"model": "m", "messages": []}

    for _ in range(2):
        got = []
        stream = client.with_options(timeout=0.5).chat.completions.create(**ask, stream=True)
        with pytest.raises((openai.APIError, httpx2.TransportError)):
            for chunk in stream:
                got.append(chunk)  # noqa: PERF402 - what came before the end counts
        assert len(got) == 3
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.5).chat.completions.create(**ask)


def test_a_schedule_of_statuses_is_kept(server: FakeOpenAI, client: openai.OpenAI) -> None:
    server.schedule(429, 200, 503)

    assert [_status(client) for _ in range(4)] == [429, 200, 503, 200]


def _status(client: openai.OpenAI) -> int:
    try:
        status: int = client.chat.completions.with_raw_response.create(model="m", messages=[]).status_code
    except openai.APIStatusError as error:
        return int(error.status_code)
    return status


@pytest.mark.parametrize(
    ("form", "header", "value"),
    [("seconds", "retry-after", "2"), ("milliseconds", "retry-after-ms", "2000"), ("text", "retry-after", None)],
)
def test_a_refusal_says_how_long_to_wait(
    server: FakeOpenAI, client: openai.OpenAI, form: WaitForm, header: str, value: str | None
) -> None:
    server.fail(429, wait=2, form=form)

    with pytest.raises(openai.RateLimitError) as raised:
        client.chat.completions.create(model="m", messages=[])

    assert raised.value.response.headers.get(header) == value
    assert ("try again in 2s" in str(raised.value)) == (form == "text")


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

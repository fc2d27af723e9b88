"""A whole call: the core's gate and retries around the provider, against the wire."""

from __future__ import annotations

import gc
import threading
from typing import Any

import anyio
import anyio.to_thread
import pytest

from proctor.concurrency import run_gates
from proctor.model import AttemptTimeout, GenerateConfig, Model, Pacing, close_models, get_model, run_models
from proctor_testkit import FakeOpenAI

pytestmark = pytest.mark.anyio


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def model(server: FakeOpenAI, slept: list[float]) -> Model:
    """A model whose waits are noted and not waited."""

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    model = get_model("openai/gpt-4o-mini", base_url=server.base_url, api_key="sk-test-1f2e3d4c5b6a", memoize=False)
    model.pacing = Pacing(sleep=sleep, random=lambda: 0.5)
    return model


async def test_refused_for_ever_with_three_retries_is_four_requests(server: FakeOpenAI, model: Model) -> None:
    server.fail(429)
    server.always()

    with pytest.raises(Exception, match="429 rate_limit_exceeded: Rate limit reached"):
        await model.generate("?", config=GenerateConfig(max_retries=3))
    await model.api.aclose()

    assert len(server.requests) == 4


async def test_the_wait_is_what_the_service_asked_for(server: FakeOpenAI, model: Model, slept: list[float]) -> None:
    server.fail(429, headers={"retry-after": "7"})
    server.fail(500)
    server.send(200, b"not json")
    server.drop()

    output = await model.generate("?")
    await model.api.aclose()

    assert output.completion == "The answer is 4."
    assert slept == [7.0, 1.0, 2.0, 4.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_permanent_refusal_is_one_request(server: FakeOpenAI, model: Model, status: int) -> None:
    server.fail(status)

    with pytest.raises(Exception, match=str(status)):
        await model.generate("?")
    await model.api.aclose()

    assert len(server.requests) == 1


async def test_a_server_that_takes_the_request_and_says_nothing(server: FakeOpenAI, model: Model) -> None:
    await model.generate("?")  # so that the connection stands when the clock starts
    server.stall()
    server.always()

    with pytest.raises(AttemptTimeout):
        await model.generate("?", config=GenerateConfig(attempt_timeout=0.3, max_retries=1))
    await model.api.aclose()

    assert len(server.requests) == 3


async def test_connections_are_as_many_as_the_gate_lets_through_and_are_used_again(server: FakeOpenAI) -> None:
    config = GenerateConfig(max_connections=4)
    model = get_model("openai/gpt-4o-mini", base_url=server.base_url, api_key="k", config=config, memoize=False)

    with run_gates():
        async with anyio.create_task_group() as tasks:
            for _ in range(40):
                tasks.start_soon(model.generate, "?")
    await model.api.aclose()

    assert len(server.requests) == 40
    assert server.peak <= 4
    assert server.connections <= 4


async def test_models_of_one_credential_share_their_connections_and_can_be_closed_together(server: FakeOpenAI) -> None:
    one = get_model("openai/gpt-4o", base_url=server.base_url, api_key="k")
    other = get_model("openai/gpt-4o-mini", base_url=server.base_url, api_key="k")

    await one.generate("?")
    await other.generate("?")
    await close_models()

    assert server.connections == 1


async def test_a_run_that_ends_leaves_the_connections_of_another_one_alone(server: FakeOpenAI) -> None:
    released = threading.Event()

    def late(body: dict[str, Any]) -> dict[str, Any]:
        released.wait(60)
        return server.answer("Late.")

    with run_models():
        mine = get_model("openai/gpt-4o", base_url=server.base_url, api_key="k")
        await mine.generate("?")
        with run_models():
            other = get_model("openai/gpt-4o", base_url=server.base_url, api_key="k")
            await other.generate("?")
            assert other is not mine
            server.reply(late)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(mine.generate, "?")
                await anyio.to_thread.run_sync(server.wait, 3)
                await close_models()
                released.set()
        await mine.generate("?")
        await close_models()

    assert len(server.requests) == 4, "no request was cut off and sent again"
    assert server.connections == 1


async def test_a_model_that_was_closed_connects_again(server: FakeOpenAI) -> None:
    model = get_model("openai/gpt-4o", base_url=server.base_url, api_key="k", memoize=False)
    for _ in range(2):
        await model.generate("?")
        await model.api.aclose()

    assert server.connections == 2


async def test_a_model_that_nobody_closed_does_not_keep_its_connections_from_being_closed(server: FakeOpenAI) -> None:
    first = get_model("openai/gpt-4o", base_url=server.base_url, api_key="k", memoize=False)
    other = get_model("openai/gpt-4o", base_url=server.base_url, api_key="k", memoize=False)
    await first.generate("?")
    await other.generate("?")
    client = other.api._connections.client()  # type: ignore[attr-defined]

    del first
    gc.collect()
    await other.api.aclose()

    assert client.closed


def test_a_model_made_before_any_loop_works_in_each(server: FakeOpenAI) -> None:
    model = get_model("openai/gpt-4o", base_url=server.base_url, api_key="k", memoize=False)

    async def ask() -> Any:
        output = await model.generate("?")
        await model.api.aclose()
        return output.completion

    assert [anyio.run(ask, backend=backend) for backend in ("asyncio", "trio", "asyncio")] == ["The answer is 4."] * 3

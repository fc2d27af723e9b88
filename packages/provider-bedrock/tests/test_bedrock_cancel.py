"""A call that is cancelled: its connection is closed, its thread ends, and no other call is disturbed."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import anyio.to_thread
import pytest

from proctor.contracts import CallRecord, current_call
from proctor_provider_bedrock import _connections
from proctor_provider_bedrock._connections import Call
from proctor_testkit import FakeBedrock

pytestmark = pytest.mark.anyio


async def cancelled_when_it_was_sent(server: FakeBedrock, made: Any, ask: Any) -> None:
    before = len(server.requests)
    async with anyio.create_task_group() as group:
        group.start_soon(ask, made)
        assert await anyio.to_thread.run_sync(server.wait, before + 1)
        group.cancel_scope.cancel()


@pytest.mark.parametrize("stream", [False, True])
async def test_the_connection_of_a_silent_service_is_closed(
    server: FakeBedrock, api: Any, ask: Any, stream: bool
) -> None:
    server.stall()

    await cancelled_when_it_was_sent(server, api(server, stream=stream), ask)

    # The server waits for the client to go away: nothing else ends its answer.
    assert await anyio.to_thread.run_sync(server.wait_idle)


async def test_the_connection_of_a_stream_that_fell_silent_is_closed(server: FakeBedrock, api: Any, ask: Any) -> None:
    server.break_off(3, stall=True)

    await cancelled_when_it_was_sent(server, api(server, stream=True), ask)

    assert await anyio.to_thread.run_sync(server.wait_idle)


async def test_the_thread_of_a_cancelled_call_ends(
    server: FakeBedrock, api: Any, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()
    made = api(server)
    run = made._run

    def observed(*args: Any) -> None:
        run(*args)
        ended.set()

    monkeypatch.setattr(made, "_run", observed)
    server.stall()

    await cancelled_when_it_was_sent(server, made, ask)

    assert await anyio.to_thread.run_sync(ended.wait, 60)


async def test_the_raw_call_of_a_cancelled_attempt_is_kept(server: FakeBedrock, api: Any, ask: Any) -> None:
    server.stall()
    record = CallRecord()
    token = current_call.set(record)

    await cancelled_when_it_was_sent(server, api(server), ask)
    current_call.reset(token)

    assert record.request is not None and record.request["modelId"] == "us.amazon.nova-lite-v1:0"
    assert record.response is None


async def test_many_cancelled_calls_disturb_no_other(server: FakeBedrock, api: Any) -> None:
    made = api(server)

    async def slow(body: dict[str, Any]) -> dict[str, Any]:
        text = body["messages"][0]["content"][0]["text"]
        if text == "wait":
            await anyio.sleep_forever()
        return FakeBedrock.answer(text)

    server.reply(slow)
    replies: list[str] = []

    from proctor.schema import ChatMessageUser, GenerateConfig

    async def one(text: str) -> None:
        output = await made.generate([ChatMessageUser(content=text)], [], "auto", GenerateConfig())
        replies.append(output.completion)

    for round in range(5):
        async with anyio.create_task_group() as others, anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(one, "wait")
                others.start_soon(one, f"go {round}")
            assert await anyio.to_thread.run_sync(server.wait, 10 * (round + 1))
            group.cancel_scope.cancel()
    await made.aclose()

    assert sorted(replies) == sorted(f"go {round}" for round in range(5) for _ in range(5))


class Connection:
    """What a call knows of a connection."""

    def __init__(self) -> None:
        self.sock: Any = self
        self.closed = False
        self.proctor_call: Call | None = None

    def shutdown(self, how: int) -> None:
        self.closed = True


def test_a_connection_that_another_call_has_by_now_is_left_alone() -> None:
    first, second, connection = Call({}), Call({}), Connection()
    first.use(connection)
    second.use(connection)

    first.end()

    assert not connection.closed
    second.end()
    assert connection.closed


def test_a_call_that_is_over_gets_no_connection() -> None:
    call = Call({})
    call.end()

    with pytest.raises(ConnectionAbortedError):
        call.use(Connection())


async def test_the_connections_of_this_version_of_the_sdk_can_be_ended(server: FakeBedrock, api: Any) -> None:
    import boto3

    assert _connections.track_connections(boto3.client("bedrock-runtime", region_name="us-east-1"))

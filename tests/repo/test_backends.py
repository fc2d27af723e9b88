"""Canaries: the promises of the root conftest hold for the process that runs the tests."""

from __future__ import annotations

import asyncio
import os
import socket

import anyio
import pytest
import trio

from proctor_testkit import OutsideNetworkError

seen: list[str] = []


@pytest.mark.anyio
async def test_the_back_end_in_use_is_the_one_asked_for(anyio_backend: str) -> None:
    await anyio.lowlevel.checkpoint()

    in_trio = trio.lowlevel.in_trio_run()

    assert anyio_backend == ("trio" if in_trio else "asyncio")
    if not in_trio:
        assert asyncio.get_running_loop().is_running()
    seen.append(anyio_backend)


def test_both_back_ends_were_used() -> None:
    assert seen == ["asyncio", "trio"]


def test_a_connection_to_another_machine_is_refused() -> None:
    with socket.socket() as client, pytest.raises(OutsideNetworkError, match=r"192\.0\.2\.1"):
        client.connect(("192.0.2.1", 80))


def test_a_name_of_another_machine_is_not_looked_up() -> None:
    with pytest.raises(OutsideNetworkError, match="example"):
        socket.getaddrinfo("example.invalid", 443)


def test_loopback_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()


def test_no_key_of_the_person_who_runs_the_tests_is_seen() -> None:
    assert not [name for name in os.environ if name.endswith("_API_KEY")]

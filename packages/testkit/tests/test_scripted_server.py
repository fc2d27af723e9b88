"""The engine of the fake model services."""

from __future__ import annotations

import gc
import socket
from contextlib import ExitStack, closing
from urllib.parse import urlsplit

from proctor_testkit import FakeOpenAI


def test_connections_that_have_just_come_are_closed_with_the_server() -> None:
    for _ in range(20):
        with ExitStack() as clients:
            with FakeOpenAI() as server:
                address = urlsplit(server.base_url)
                for _ in range(5):
                    clients.enter_context(closing(socket.create_connection((address.hostname, address.port))))
            del server
    gc.collect()  # what is left open is a warning then, which is an error here

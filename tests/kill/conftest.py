"""One server, and one set of runs that were left alone, for all kill tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kill_outcome import Judge
from kill_server import CountingServer


@pytest.fixture(scope="session")
def server() -> Iterator[CountingServer]:
    with CountingServer() as server:
        yield server


@pytest.fixture(scope="session")
def judge(server: CountingServer, tmp_path_factory: pytest.TempPathFactory) -> Judge:
    return Judge(tmp_path_factory.mktemp("kill"), server)

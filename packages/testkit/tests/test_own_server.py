"""The README's fake of a protocol of one's own has all that the suite of model providers asks of a server."""

from __future__ import annotations

import json
import re
from http.client import RemoteDisconnected
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from proctor_testkit import ScriptedServer

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def server() -> Any:
    [text] = re.findall(r"```python\n(# acme_server\.py\n.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(text, names)
    with names["AcmeServer"]() as server:
        assert isinstance(server, ScriptedServer)
        yield server


def ask(server: ScriptedServer, **body: Any) -> Any:
    with urlopen(server.base_url, json.dumps({"prompt": "?", **body}).encode(), timeout=20) as reply:
        return json.load(reply)


def test_it_says_what_it_is_told(server: Any) -> None:
    server.say(None, calls=[("weather", {"city": "Bern"})], usage={"input": 12, "output": 3})

    told, usual, cut = ask(server), ask(server), ask(server, max_tokens=1)

    assert told["calls"] == [{"id": "call-0", "tool": "weather", "with": {"city": "Bern"}}]
    assert (told["stop"], told["tokens"]) == ("tools", {"input": 12, "output": 3})
    assert (usual["reply"], usual["stop"], cut["stop"]) == ("The answer is 4.", "end", "length")
    assert [request.body.get("max_tokens") for request in server.requests] == [None, None, 1]


def test_it_fails_as_it_is_told(server: Any) -> None:
    server.fail(429, headers={"retry-after": "7"})
    server.reset()
    server.send(200, b"[]")

    with pytest.raises(HTTPError) as refused:
        ask(server)
    with pytest.raises((RemoteDisconnected, ConnectionError)):
        ask(server)

    assert (refused.value.code, refused.value.headers["retry-after"]) == (429, "7")
    refused.value.close()
    assert ask(server) == []

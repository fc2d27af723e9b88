"""FakeOpenAI: a server on loopback that speaks OpenAI's protocol and fails as told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Literal, TypeAlias

from proctor_testkit._openai_stream import chat_events, response_events
from proctor_testkit._openai_wire import answer, chat_body, error_body, response_body
from proctor_testkit._scripted_server import FakeRequest, Reply, ScriptedServer, Step

__all__ = ["FakeOpenAI", "Garbled", "WaitForm"]

WaitForm: TypeAlias = Literal["seconds", "date", "milliseconds", "text"]
"""How a refusal says how long to wait: ``retry-after`` in seconds or as a date, ``retry-after-ms``, or its message."""

Garbled: TypeAlias = Literal["empty", "html", "cut", "null", "list", "no choices", "error"]
"""What stands in place of a reply, with status 200."""

_GARBLED: dict[str, bytes] = {
    "empty": b"",
    "html": b"<html><body>Welcome</body></html>",
    "cut": b'{"id": "chatcmpl-1", "choices": [{"index": 0, "mess',
    "null": b"null",
    "list": b"[]",
    "no choices": b'{"id": "chatcmpl-1", "object": "chat.completion", "choices": []}',
    "error": b'{"error": {"message": "The server is overloaded.", "type": "overloaded_error", "code": 529}}',
}

_ERRORS = {
    400: ("invalid_request_error", "invalid_request", "The request is wrong."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    404: ("invalid_request_error", "model_not_found", "The model does not exist."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached."),
}


class FakeOpenAI(ScriptedServer):
    """A server for tests: chat completions and the Responses API under any prefix, Azure's paths included.

    It answers ``text`` until told otherwise, in a stream when the request asks for one. ``say``, ``fail``, ``garble``,
    ``send``, ``stall``, ``drop``, ``break_off``, ``drip`` and ``reset`` queue what happens to the next requests, one
    each; ``schedule`` queues several; ``always`` repeats the last queued step for ever; ``reply`` replaces the answer
    by a function of the request's body.

    Example::

        with FakeOpenAI() as server:
            server.fail(429, headers={"retry-after": "0.01"})
            server.say("Blue.")
            model = get_model("openai/gpt-4o-mini", base_url=server.base_url, api_key="any")
            ...
            assert len(server.requests) == 2
    """

    def __init__(self, text: str = "The answer is 4.") -> None:
        super().__init__("fake-openai", text)

    @property
    def base_url(self) -> str:
        """The address, with OpenAI's ``/v1``."""
        return f"{self.root_url}/v1"

    answer = staticmethod(answer)

    def fail(
        self,
        status: int,
        *,
        headers: Mapping[str, str] | None = None,
        message: str | None = None,
        kind: str | None = None,
        code: str | None = None,
        wait: float | None = None,
        form: WaitForm = "seconds",
    ) -> None:
        """Refuse the next request with an error as OpenAI writes it.

        Args:
            status: of the response.
            headers: of the response.
            message: in place of the usual one for the status.
            kind: its type.
            code: its code.
            wait: seconds that it asks the client to wait.
            form: how it says so. A date is of whole seconds, counted from now.
        """
        default = _ERRORS.get(status, ("server_error", "server_error", "The server had an error."))
        said = wait is not None and form == "text"
        body = error_body(
            (default[2] if message is None else message) + (f" Please try again in {wait:g}s." if said else ""),
            kind=default[0] if kind is None else kind,
            code=default[1] if code is None else code,
        )
        self.send(status, json.dumps(body).encode(), {**_wait_header(wait, form), **(headers or {})})

    def schedule(self, *statuses: int) -> None:
        """Answer the next requests with these, in turn: 200 is the usual reply, anything else a refusal."""
        for status in statuses:
            if status == 200:
                self._steps.append(Step())
            else:
                self.fail(status)

    def garble(self, what: Garbled) -> None:
        """Answer the next request with status 200 and something that is no reply."""
        self.send(200, _GARBLED[what])

    def respond(self, step: Step, said: Reply, request: FakeRequest) -> Step:
        """The reply as a chat completion or a response, by the request's path."""
        path = request.path.partition("?")[0]
        stream = bool(request.body.get("stream"))
        if path.endswith("/chat/completions"):
            body = chat_body(said, request.body)
            events = chat_events(body, request.body) if stream else []
        elif path.endswith("/responses"):
            body = response_body(said, request.body)
            events = response_events(body) if stream else []
        else:
            return Step(404, body=json.dumps(error_body(f"Unknown path {request.path}")).encode())
        if not stream:
            return replace(step, body=json.dumps(body).encode())
        return replace(step, body=events, headers={"content-type": "text/event-stream", **step.headers})

    def _head(self, made: Step) -> bytes:
        return super()._head(replace(made, headers={"x-request-id": f"req_{len(self.requests)}", **made.headers}))


def _wait_header(wait: float | None, form: WaitForm) -> dict[str, str]:
    if wait is None or form == "text":
        return {}
    if form == "milliseconds":
        return {"retry-after-ms": f"{wait * 1000:.0f}"}
    if form == "date":
        return {"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=wait), usegmt=True)}
    return {"retry-after": f"{wait:g}"}

"""FakeOpenAI: a server on loopback that speaks OpenAI's protocol and fails as told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from proctor_testkit._openai_wire import answer, chat_body, error_body, response_body
from proctor_testkit._scripted_server import FakeRequest, Reply, ScriptedServer, Step

__all__ = ["FakeOpenAI"]

_ERRORS = {
    400: ("invalid_request_error", "invalid_request", "The request is wrong."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    404: ("invalid_request_error", "model_not_found", "The model does not exist."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached."),
}


class FakeOpenAI(ScriptedServer):
    """A server for tests: chat completions and the Responses API under any prefix, Azure's paths included.

    It answers ``text`` until told otherwise. ``say``, ``fail``, ``send``, ``stall``, ``drop`` and ``reset`` queue what
    happens to the next requests, one each; ``always`` repeats the last queued step for ever; ``reply`` replaces the
    answer by a function of the request's body.

    Example::

        with FakeOpenAI() as server:
            server.fail(429, headers={"retry-after": "0.01"})
            server.say("Blue.")
            model = get_model("openai/gpt-4o-mini", base_url=server.base_url, api_key="any")
            ...
            assert len(server.requests) == 2
    """

    def __init__(self, text: str = "The answer is 4.") -> None:
        super().__init__("fake-openai")
        self.text = text

    @property
    def base_url(self) -> str:
        """The address, with OpenAI's ``/v1``."""
        return f"{self.root_url}/v1"

    answer = staticmethod(answer)

    def _usual(self) -> Reply:
        """``text``."""
        return answer(self.text)

    def say(self, text: str | None = None, **said: Any) -> None:
        """Answer the next request with a reply; the arguments are those of ``answer``."""
        self._steps.append(Step(said=answer(text, **said)))

    def fail(
        self,
        status: int,
        *,
        headers: Mapping[str, str] | None = None,
        message: str | None = None,
        kind: str | None = None,
        code: str | None = None,
    ) -> None:
        """Refuse the next request with an error as OpenAI writes it."""
        default = _ERRORS.get(status, ("server_error", "server_error", "The server had an error."))
        body = error_body(
            default[2] if message is None else message,
            kind=default[0] if kind is None else kind,
            code=default[1] if code is None else code,
        )
        self.send(status, json.dumps(body).encode(), headers)

    def _respond(self, step: Step, said: Reply, request: FakeRequest) -> Step:
        """The reply as a chat completion or a response, by the request's path."""
        path = request.path.partition("?")[0]
        if path.endswith("/chat/completions"):
            body = chat_body(said, request.body)
        elif path.endswith("/responses"):
            body = response_body(said, request.body)
        else:
            return Step(404, body=json.dumps(error_body(f"Unknown path {request.path}")).encode())
        return replace(step, body=json.dumps(body).encode())

    def _head(self, made: Step) -> bytes:
        return super()._head(replace(made, headers={"x-request-id": f"req_{len(self.requests)}", **made.headers}))

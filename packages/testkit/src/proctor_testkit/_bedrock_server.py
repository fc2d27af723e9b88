"""FakeBedrock: a server on loopback that speaks Amazon Bedrock's Converse and fails as told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import unquote

from proctor_testkit._bedrock_wire import answer, converse_body, problem, stream_messages
from proctor_testkit._event_stream import corrupted, exception
from proctor_testkit._scripted_server import FakeRequest, Reply, ScriptedServer, Step

__all__ = ["FakeBedrock"]

_ERRORS = {
    400: ("ValidationException", "The provided request is not valid"),
    401: ("UnrecognizedClientException", "The security token included in the request is invalid."),
    403: ("AccessDeniedException", "You don't have access to the model with the specified model ID."),
    404: ("ResourceNotFoundException", "Could not resolve the foundation model from the provided model identifier."),
    408: ("ModelTimeoutException", "The model took too long to answer."),
    424: ("ModelErrorException", "The model failed."),
    429: ("ThrottlingException", "Too many requests, please wait before trying again."),
    500: ("InternalServerException", "The system encountered an unexpected error. Try your request again."),
    503: ("ServiceUnavailableException", "Bedrock is unable to process your request."),
}
_STREAM = {"content-type": "application/vnd.amazon.eventstream"}


class FakeBedrock(ScriptedServer):
    """A server for tests: Converse as JSON, ConverseStream as an event stream with its checksums.

    It answers ``text`` until told otherwise, and refuses what Bedrock refuses: a request without a signature, blank
    texts, roles that do not alternate, tool results that nobody asked for. ``say``, ``fail``, ``fail_in_stream``,
    ``corrupt``, ``send``, ``stall``, ``drop``, ``reset`` and ``break_off`` queue what happens to the next requests, one
    each; ``always`` repeats the last queued step for ever; ``reply`` replaces the answer by a function of the request's
    body.

    Example::

        with FakeBedrock() as server:
            server.fail(429, headers={"retry-after": "2"})
            client = boto3.client("bedrock-runtime", endpoint_url=server.base_url, region_name="us-east-1")
            ...
            assert server.models == ["us.amazon.nova-lite-v1:0"]
    """

    def __init__(self, text: str = "The answer is 4.") -> None:
        super().__init__("fake-bedrock", text)

    @property
    def base_url(self) -> str:
        """The address."""
        return self.root_url

    @property
    def models(self) -> list[str]:
        """The model of each request so far."""
        return [unquote(request.path.split("/")[2]) for request in self.requests]

    @property
    def streamed(self) -> list[bool]:
        """Whether each request so far asked for a stream."""
        return [request.path.endswith("/converse-stream") for request in self.requests]

    answer = staticmethod(answer)

    def fail(
        self,
        status: int,
        *,
        headers: Mapping[str, str] | None = None,
        message: str | None = None,
        code: str | None = None,
    ) -> None:
        """Refuse the next request with an error as Bedrock writes it; ``code`` is the name of the exception."""
        name, text = _ERRORS.get(status, ("InternalServerException", "It failed."))
        named = {"x-amzn-errortype": code or name, **(headers or {})}
        self.send(status, json.dumps({"message": text if message is None else message}).encode(), named)

    def fail_in_stream(self, name: str, message: str = "It failed.", *, after: int = 2) -> None:
        """Begin the next stream, and send the exception ``name`` (``throttlingException``) after some messages."""
        self._steps.append(Step(more={"exception": exception(name, message), "after": after}))

    def corrupt(self, at: int = 1) -> None:
        """Send one message of the next stream with a bit turned over."""
        self._steps.append(Step(more={"corrupt": at}))

    def respond(self, step: Step, said: Reply, request: FakeRequest) -> Step:
        """The reply as a body or as an event stream, by the request's path; or why there is none."""
        signed = request.headers.get("authorization", "")
        if not signed.startswith(("AWS4-HMAC-SHA256 ", "Bearer ")):
            return _refusal(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
        if (refused := problem(request.body)) is not None:
            return _refusal(400, "ValidationException", refused)
        if request.path.endswith("/converse"):
            return replace(step, body=json.dumps(converse_body(said, request.body)).encode())
        if not request.path.endswith("/converse-stream"):
            return _refusal(404, "UnknownOperationException", f"Unknown path {request.path}")
        messages = stream_messages(said, request.body)
        if "exception" in step.more:
            messages = [*messages[: step.more["after"]], step.more["exception"]]
        if "corrupt" in step.more:
            messages[step.more["corrupt"]] = corrupted(messages[step.more["corrupt"]])
        return replace(step, body=messages, headers={**_STREAM, **step.headers})

    def _head(self, made: Step) -> bytes:
        return super()._head(replace(made, headers={"x-amzn-requestid": f"req-{len(self.requests)}", **made.headers}))


def _refusal(status: int, code: str, message: str) -> Step:
    return Step(status, {"x-amzn-errortype": code}, json.dumps({"message": message}).encode())

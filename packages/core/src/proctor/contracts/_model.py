"""What a model provider implements, and how it tells the core about a failure, a raw call and its rate limits."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from proctor.schema import ChatMessage, GenerateConfig, ModelOutput, ToolChoice, ToolInfo

__all__ = ["CallRecord", "ModelAPI", "RateLimits", "Retry", "current_call", "record_call"]


@dataclass(frozen=True, slots=True)
class Retry:
    """What a failed request means for the next one.

    Attributes:
        kind: ``rate_limit`` (the provider asks for less: retried, and the connection limit may fall), ``transient``
            (server, network or time-out: retried) or ``permanent`` (sent exactly once).
        after: seconds that the provider asked to wait, or None when it said nothing.

    Example:
        >>> Retry("rate_limit", after=1.5)
        Retry(kind='rate_limit', after=1.5)
    """

    kind: Literal["rate_limit", "transient", "permanent"]
    after: float | None = None


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What a provider says about its quota before it refuses; ``None`` where it says nothing.

    Attributes:
        requests_limit: requests that a period allows.
        requests_remaining: those that are left of them.
        requests_reset: seconds until they are whole again.
        tokens_limit: tokens that a period allows.
        tokens_remaining: those that are left of them.
        tokens_reset: seconds until they are whole again.

    Example:
        >>> known = RateLimits(requests_limit=500, requests_remaining=12, requests_reset=0.5)
        >>> known.tokens_limit is None
        True
    """

    requests_limit: int | None = None
    requests_remaining: int | None = None
    requests_reset: float | None = None
    tokens_limit: int | None = None
    tokens_remaining: int | None = None
    tokens_reset: float | None = None


class CallRecord:
    """The raw call of one attempt, filled by :func:`record_call`; kept or dropped by the core.

    Attributes:
        request: the request body as it was sent (never changed afterwards, never copied; no secret in it).
        response: the response body as plain JSON data (or its text, when it is not JSON).
        time: seconds between sending and the complete response.
        headers: the response's headers, lower-case names.

    Example:
        >>> attempt.request, attempt.time
        ({'prompt': 'hello'}, 0.2)
    """

    __slots__ = ("headers", "request", "response", "time")

    def __init__(self) -> None:
        self.request: dict[str, Any] | None = None
        self.response: Any = None
        self.time: float | None = None
        self.headers: Mapping[str, str] | None = None


current_call: ContextVar[CallRecord | None] = ContextVar("proctor_current_call", default=None)
"""Where the core waits for the raw call of the attempt that runs now (None: nobody wants it)."""


def record_call(
    request: dict[str, Any],
    response: Any,
    time: float | None = None,
    *,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Hand the raw request and response of this attempt to the core, which decides whether the log keeps them.

    A provider calls it once per request, for errors too. It costs nothing outside of ``Model.generate``.

    Args:
        request: the body as sent, without credentials; the provider does not change it afterwards.
        response: the body as received: JSON data, or text.
        time: seconds from sending to the complete response.
        headers: the response's headers with lower-case names (for ``ModelAPI.limits``).

    Example:
        >>> from proctor.contracts import CallRecord, current_call, record_call
        >>> attempt = CallRecord()
        >>> token = current_call.set(attempt)  # as the core does before each attempt
        >>> record_call({"prompt": "hello"}, {"text": "hello"}, 0.2, headers={"requests-left": "12"})
        >>> current_call.reset(token)
        >>> attempt.response
        {'text': 'hello'}
    """
    record = current_call.get()
    if record is not None:
        record.request, record.response, record.time, record.headers = request, response, time, headers


class ModelAPI(ABC):
    """One model of one provider. The core owns gates, retries, time limits, caching, usage and the log.

    Args:
        model_name: the name that the provider knows, without the ``provider/`` prefix.
        base_url: where requests go, when it is not the provider's own address.
        config: the settings of the level "provider" (defaults under everything else), or None.

    An implementation keeps credentials out of ``repr()``, of exceptions and of recorded calls.

    Example:
        >>> import anyio
        >>> from proctor.contracts import ModelAPI, RateLimits, Retry
        >>> from proctor.schema import ChatMessageUser, GenerateConfig, ModelOutput
        >>> class Echo(ModelAPI):
        ...     def connection_key(self):
        ...         return self.hash_key("echo", None, self.base_url)
        ...
        ...     async def generate(self, input, tools, tool_choice, config):
        ...         return ModelOutput.from_content(self.model_name, input[-1].text)
        ...
        ...     def classify(self, exc):
        ...         return Retry("rate_limit", after=2.0) if "busy" in str(exc) else super().classify(exc)
        ...
        ...     def limits(self, response):
        ...         return RateLimits(requests_remaining=int(response["requests-left"]))
        >>> api = Echo("loud", base_url="http://localhost:8000")
        >>> api
        Echo('loud')
    """

    collapse_user_messages: bool = False
    """Whether consecutive user messages must be joined into one before they are sent."""
    collapse_assistant_messages: bool = False
    """Whether consecutive assistant messages must be joined into one before they are sent."""

    def __init__(self, model_name: str, *, base_url: str | None = None, config: GenerateConfig | None = None) -> None:
        self.model_name = model_name
        self.base_url = base_url
        self.config = config

    @abstractmethod
    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """Send exactly one request and return the reply: no gate, no retry, no cache inside.

        A request refused for its length or by a content filter is a reply (``stop_reason`` ``model_length`` or
        ``content_filter``), not an error. Other failures raise what ``classify`` understands.

        Args:
            input: the conversation, which ends with what is to be answered.
            tools: what the model may call; empty for none.
            tool_choice: ``auto``, ``any`` (it must call one), ``none``, or the one tool that it must call.
            config: the settings of all levels, merged; what is None is left to the provider.

        Example:
            >>> output = anyio.run(api.generate, [ChatMessageUser(content="hello")], [], "auto", GenerateConfig())
            >>> output.completion
            'hello'
        """

    @abstractmethod
    def connection_key(self) -> str:
        """What shares one connection gate: a hash of provider, credential and base URL (see :meth:`hash_key`).

        Example:
            >>> api.connection_key() == Echo("quiet", base_url="http://localhost:8000").connection_key()
            True
        """

    def classify(self, exc: BaseException) -> Retry:
        """What ``exc``, raised by ``generate``, means for a retry. Time-outs and lost connections are transient.

        Example:
            >>> api.classify(RuntimeError("busy"))
            Retry(kind='rate_limit', after=2.0)
            >>> api.classify(ConnectionResetError())
            Retry(kind='transient', after=None)
            >>> api.classify(KeyError("no such model"))
            Retry(kind='permanent', after=None)
        """
        if isinstance(exc, (TimeoutError, ConnectionError)):
            return Retry("transient")
        return Retry("permanent")

    def limits(self, response: Mapping[str, str]) -> RateLimits | None:
        """The quota that the headers of a ``response`` tell of (lower-case names), or None.

        Example:
            >>> api.limits({"requests-left": "12"}).requests_remaining
            12
        """
        return None

    async def aclose(self) -> None:
        """Close the connections that belong to the running event loop.

        Example:
            >>> anyio.run(api.aclose)
        """
        return

    @staticmethod
    def hash_key(provider: str, credential: str | None, base_url: str | None) -> str:
        """``provider:`` and 16 hex digits that stand for credential and address without giving them away.

        Args:
            provider: the provider's name.
            credential: what is sent to prove who asks, or None.
            base_url: where requests go, or None.

        Example:
            >>> ModelAPI.hash_key("echo", "secret", "http://localhost:8000")
            'echo:7adf5b362cea34e3'
        """
        digest = hashlib.blake2b(f"{credential or ''}\0{base_url or ''}".encode(), digest_size=8)
        return f"{provider}:{digest.hexdigest()}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_name!r})"

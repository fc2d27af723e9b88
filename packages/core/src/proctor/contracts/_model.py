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
    """

    kind: Literal["rate_limit", "transient", "permanent"]
    after: float | None = None


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What a provider says about its quota before it refuses; ``None`` where it says nothing. Resets are in seconds."""

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
        """

    @abstractmethod
    def connection_key(self) -> str:
        """What shares one connection gate: a hash of provider, credential and base URL (see :meth:`hash_key`)."""

    def classify(self, exc: BaseException) -> Retry:
        """What ``exc``, raised by ``generate``, means for a retry. Time-outs and lost connections are transient."""
        if isinstance(exc, (TimeoutError, ConnectionError)):
            return Retry("transient")
        return Retry("permanent")

    def limits(self, response: Mapping[str, str]) -> RateLimits | None:
        """The quota that the headers of a response tell of (lower-case names), or None."""
        return None

    async def aclose(self) -> None:
        """Close the connections that belong to the running event loop."""
        return

    @staticmethod
    def hash_key(provider: str, credential: str | None, base_url: str | None) -> str:
        """``provider:`` and 16 hex digits that stand for credential and address without giving them away."""
        digest = hashlib.blake2b(f"{credential or ''}\0{base_url or ''}".encode(), digest_size=8)
        return f"{provider}:{digest.hexdigest()}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_name!r})"

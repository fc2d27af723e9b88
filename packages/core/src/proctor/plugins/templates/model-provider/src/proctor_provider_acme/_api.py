"""One request to the server, and what its failure means. Gates, retries and time limits are the core's."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import httpx2
from anyio.lowlevel import RunVar
from proctor.contracts import ModelAPI, Retry, record_call
from proctor.schema import ChatMessage, GenerateConfig, ModelOutput, ToolChoice, ToolInfo

from proctor_provider_acme._wire import read_reply, request_body

BASE_URL = "https://api.acme.example/v1"


class AcmeError(Exception):
    """The server refused a request.

    Attributes:
        status: the HTTP status.
        retry_after: seconds that the server asks to wait, if it says so.
    """

    def __init__(self, status: int, message: str, retry_after: float | None) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.retry_after = status, retry_after


class AcmeAPI(ModelAPI):
    """One model of Acme's."""

    def __init__(
        self, model_name: str, *, base_url: str | None, api_key: str | None, config: GenerateConfig | None = None
    ) -> None:
        base_url = base_url or os.environ.get("ACME_BASE_URL") or BASE_URL
        super().__init__(model_name, base_url=base_url.rstrip("/"), config=config)
        self._key = api_key or os.environ.get("ACME_API_KEY", "")
        self._client: RunVar[httpx2.AsyncClient] = RunVar("acme")  # a client belongs to one event loop

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """Send one request; the core decides about another one."""
        body = request_body(self.model_name, input, tools, tool_choice, config)
        began = time.perf_counter()
        try:
            response = await self._connected().post("/chat/completions", json=body)
        except httpx2.TransportError as error:
            raise ConnectionError(f"no answer from {self.base_url}: {error}") from error
        # The core keeps it for the log, of a failure too. The key is in a header, and so not in it.
        reply = _json(response.text)
        headers = {name.lower(): value for name, value in response.headers.items()}
        record_call(body, reply, time.perf_counter() - began, headers=headers)
        if response.status_code != 200:
            raise AcmeError(response.status_code, _message(reply), _seconds(headers.get("retry-after")))
        return read_reply(reply, self.model_name, tools)

    def classify(self, exc: BaseException) -> Retry:
        """Too many requests: later and fewer. A fault of the server: once more. Anything else: no use to ask again."""
        if isinstance(exc, AcmeError):
            if exc.status == 429:
                return Retry("rate_limit", exc.retry_after)
            return Retry("transient", exc.retry_after) if exc.status >= 500 else Retry("permanent")
        return super().classify(exc)

    def connection_key(self) -> str:
        """Models behind one key of one server share their connections."""
        return self.hash_key("acme", self._key, self.base_url)

    async def aclose(self) -> None:
        """Close what the running event loop has opened."""
        client = self._client.get(None)
        if client is not None:
            await client.aclose()

    def _connected(self) -> httpx2.AsyncClient:
        client = self._client.get(None)
        if client is None or client.is_closed:
            # The core's gate says how many requests run at once and its clock when one has taken too long.
            client = httpx2.AsyncClient(
                base_url=self.base_url or BASE_URL,
                headers={"authorization": f"Bearer {self._key}"},
                limits=httpx2.Limits(max_connections=None),
                timeout=httpx2.Timeout(None, connect=30),
            )
            self._client.set(client)
        return client


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _message(reply: Any) -> str:
    error = reply.get("error") if isinstance(reply, dict) else reply
    return str(error.get("message") if isinstance(error, dict) else error)


def _seconds(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:  # a date; the core's own pause will do
        return None

"""Acme's models: chat completions over HTTP, with nothing but the standard library."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from anyio import to_thread

from acme_provider.hooks import AcmeArgs
from proctor.contracts import ModelAPI, PrerequisiteError, RateLimits, Retry, UsageError, record_call
from proctor.model import check_base_url, parse_tool_call, tool_schema
from proctor.schema import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    ToolChoice,
    ToolFunction,
    ToolInfo,
)

STOP_REASONS = {"stop": "stop", "length": "max_tokens", "tool_calls": "tool_calls", "content_filter": "content_filter"}


class AcmeError(Exception):
    """Acme refused a request."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str]) -> None:
        super().__init__(f"Acme answered {status}: {text[:200]}")
        self.status = status
        self.headers = headers


class AcmeAPI(ModelAPI):
    """One of Acme's models."""

    collapse_user_messages = True

    def __init__(
        self, name: str, *, base_url: str | None, api_key: str | None, config: GenerateConfig | None, args: AcmeArgs
    ) -> None:
        super().__init__(name, base_url=base_url, config=config)
        if args.strict and args.team == "default":
            raise UsageError("Acme: strict=true needs a team: add -M team=NAME.")
        self.address = base_url or os.environ.get("ACME_BASE_URL") or ""
        if not self.address:
            raise PrerequisiteError("Acme has no address: set ACME_BASE_URL, or give --model-base-url.")
        check_base_url(self.address, "ACME_BASE_URL", ("http", "https"))
        self.key = api_key or os.environ.get("ACME_API_KEY") or f"{os.environ['ACME_ID']}:{os.environ['ACME_SECRET']}"
        self.team = args.team

    def connection_key(self) -> str:
        return self.hash_key("acme", self.key, self.address)

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        request: dict[str, Any] = {"model": self.model_name, "messages": [_message(item) for item in input]}
        if config.temperature is not None:
            request["temperature"] = config.temperature
        if config.max_tokens is not None:
            request["max_tokens"] = config.max_tokens
        if config.stop_seqs:
            request["stop"] = config.stop_seqs
        if tools:
            request["tools"] = [{"type": "function", "function": tool_schema(tool)} for tool in tools]
            named = isinstance(tool_choice, ToolFunction)
            request["tool_choice"] = (
                {"type": "function", "function": {"name": tool_choice.name}}
                if named
                else {"any": "required"}.get(tool_choice, tool_choice)
            )
        begun = time.monotonic()
        try:
            reply, headers = await to_thread.run_sync(self._post, request, abandon_on_cancel=True)
        except AcmeError as error:
            record_call(request, str(error), time.monotonic() - begun, headers=error.headers)
            raise
        seconds = time.monotonic() - begun
        record_call(request, reply, seconds, headers=headers)
        return _output(reply, tools, seconds)

    def _post(self, request: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        call = urllib.request.Request(
            f"{self.address}/chat/completions",
            json.dumps(request).encode(),
            {"content-type": "application/json", "authorization": f"Bearer {self.key}", "x-acme-team": self.team},
        )
        try:
            with urllib.request.urlopen(call, timeout=60) as reply:
                return json.load(reply), {name.lower(): value for name, value in reply.headers.items()}
        except urllib.error.HTTPError as error:
            with error:
                headers = {name.lower(): value for name, value in error.headers.items()}
                raise AcmeError(error.code, error.read().decode(errors="replace"), headers) from None

    def classify(self, exc: BaseException) -> Retry:
        if isinstance(exc, AcmeError) and exc.status == 429:
            after = exc.headers.get("retry-after")
            return Retry("rate_limit", float(after) if after else None)
        if isinstance(exc, urllib.error.URLError) or (isinstance(exc, AcmeError) and exc.status >= 500):
            return Retry(kind="transient")
        return super().classify(exc)

    def limits(self, response: Mapping[str, str]) -> RateLimits | None:
        left = response.get("x-ratelimit-remaining-requests")
        return RateLimits(requests_remaining=int(left)) if left else None

    async def aclose(self) -> None:
        await super().aclose()


def _message(message: ChatMessage) -> dict[str, Any]:
    data: dict[str, Any] = {"role": message.role, "content": message.text}
    if isinstance(message, ChatMessageAssistant) and message.tool_calls:
        data["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function, "arguments": json.dumps(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if isinstance(message, ChatMessageTool):
        data["tool_call_id"] = message.tool_call_id
        if message.error is not None:
            data["content"] = f"Error: {message.error.message}"
    return data


def _output(reply: dict[str, Any], tools: list[ToolInfo], seconds: float) -> ModelOutput:
    choice, usage = reply["choices"][0], reply.get("usage") or {}
    message = ChatMessageAssistant(
        content=choice["message"].get("content") or "",
        model=reply["model"],
        source="generate",
        tool_calls=[
            parse_tool_call(call["id"], call["function"]["name"], call["function"]["arguments"], tools)
            for call in choice["message"].get("tool_calls") or ()
        ]
        or None,
    )
    stop = STOP_REASONS.get(choice["finish_reason"], "unknown")
    return ModelOutput(
        model=reply["model"],
        choices=[ChatCompletionChoice(message=message, stop_reason=stop)],
        usage=ModelUsage(
            input_tokens=usage.get("prompt_tokens", 0),
            output_tokens=usage.get("completion_tokens", 0),
            total_tokens=usage.get("total_tokens", 0),
        ),
        time=seconds,
    )

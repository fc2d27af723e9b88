"""The models of OpenAI and of all services that speak its protocol."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from proctor.contracts import ModelAPI, RateLimits, Retry, record_call
from proctor.schema import ChatMessage, GenerateConfig, ModelOutput, ToolChoice, ToolInfo
from proctor_provider_openai._args import AzureArgs, OpenAIArgs, ServiceArgs
from proctor_provider_openai._chat_input import chat_messages
from proctor_provider_openai._chat_output import chat_output
from proctor_provider_openai._endpoint import Endpoint, fresh_token
from proctor_provider_openai._errors import MalformedResponse, classify, rate_limits, refusal
from proctor_provider_openai._http import Connections, decode, encode, load_client
from proctor_provider_openai._media import has_files, inline_files
from proctor_provider_openai._models import is_reasoning, needs_responses, prefers_responses
from proctor_provider_openai._refused import refused_output
from proctor_provider_openai._responses_input import response_items, response_tool_choice, response_tools
from proctor_provider_openai._responses_output import response_output
from proctor_provider_openai._settings import chat_settings, chat_tool_choice, chat_tools, responses_settings

__all__ = ["OpenAIAPI"]


class OpenAIAPI(ModelAPI):
    """One model behind one endpoint, by chat completions or the Responses API.

    Args:
        provider: the provider's name, for the connection key.
        endpoint: the address and the credential.
        config: the provider-level settings.
        args: the model arguments.
    """

    def __init__(self, provider: str, endpoint: Endpoint, config: GenerateConfig | None, args: ServiceArgs) -> None:
        super().__init__(endpoint.model, base_url=endpoint.base_url, config=None)
        load_client()
        self._endpoint = endpoint
        self._args = args
        self._key = endpoint.connection_key(provider)
        self._connections = Connections(self._key, endpoint.base_url)
        self._headers = endpoint.headers
        quirks = endpoint.quirks
        reasoning = is_reasoning(endpoint.model)
        self._system_role = "developer" if endpoint.official and reasoning else "system"
        field = args.max_tokens_field or (
            "max_completion_tokens" if reasoning and not quirks.extras else quirks.max_tokens
        )
        self._max_tokens_field: str = "max_completion_tokens" if endpoint.official else field
        if args.emulate_reasoning:
            from dataclasses import replace

            quirks = replace(quirks, replay="think")
        self._quirks = quirks
        self._responses = args.responses_api
        if self._responses is None:
            wanted = prefers_responses if endpoint.official else needs_responses
            self._responses = wanted(endpoint.model) and isinstance(args, (OpenAIArgs, AzureArgs))

    def connection_key(self) -> str:
        """A hash of provider, credential and address."""
        return self._key

    def classify(self, exc: BaseException) -> Retry:
        """Refusals by status, code and text; broken connections and unreadable replies are transient."""
        return classify(exc) or super().classify(exc)

    def limits(self, response: Mapping[str, str]) -> RateLimits | None:
        """The quota in ``x-ratelimit-*`` headers."""
        return rate_limits(response)

    async def aclose(self) -> None:
        """Close the running loop's connections to this endpoint, unless other models use them too."""
        await self._connections.aclose()

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """Send one request and return the reply.

        Raises:
            APIError: if the service refused.
            ConnectionFailed: if there was no complete response.
            MalformedResponse: if the response is no reply.
        """
        if has_files(input):
            input = await inline_files(input)
        if self._responses and (config.num_choices or 1) == 1:
            body = self._responses_body(input, tools, tool_choice, config)
            answer, headers = await self._post(self._endpoint.responses, body, config)
            if isinstance(answer, ModelOutput):
                return answer
            return response_output(answer, self.model_name, tools, headers)
        body = self._chat_body(input, tools, tool_choice, config)
        answer, headers = await self._post(self._endpoint.chat, body, config)
        if isinstance(answer, ModelOutput):
            return answer
        return chat_output(answer, self.model_name, tools, headers, official=self._endpoint.official)

    def _chat_body(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> dict[str, Any]:
        endpoint, quirks = self._endpoint, self._quirks
        body: dict[str, Any] = {
            "model": self.model_name,
            "messages": chat_messages(input, quirks, self._system_role),
            **chat_settings(self.model_name, config, quirks, endpoint.official, self._max_tokens_field),
        }
        if tools:
            body["tools"] = chat_tools(tools)
            body["tool_choice"] = chat_tool_choice(tool_choice, quirks.forced_tool)
            if config.parallel_tool_calls is not None and "parallel_tool_calls" not in quirks.unsupported:
                body["parallel_tool_calls"] = config.parallel_tool_calls
        return self._add_arguments(body, config)

    def _responses_body(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> dict[str, Any]:
        args = self._args
        store = isinstance(args, (OpenAIArgs, AzureArgs)) and args.responses_store
        body: dict[str, Any] = {
            "model": self.model_name,
            "input": response_items(input, self._system_role),
            "store": store,
            **responses_settings(self.model_name, config, self._endpoint.official),
        }
        if tools:
            body["tools"] = response_tools(tools)
            body["tool_choice"] = response_tool_choice(tool_choice)
            if config.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = config.parallel_tool_calls
        return self._add_arguments(body, config)

    def _add_arguments(self, body: dict[str, Any], config: GenerateConfig) -> dict[str, Any]:
        args = self._args
        if isinstance(args, OpenAIArgs):
            for name in ("service_tier", "user", "safety_identifier"):
                value = getattr(args, name)
                if value is not None:
                    body[name] = value
        if config.extra_body:
            body.update(config.extra_body)
        return body

    async def _post(self, url: str, body: dict[str, Any], config: GenerateConfig) -> tuple[Any, Mapping[str, str]]:
        """The JSON of a successful response (or the output that a refusal of the content stands for), and headers."""
        headers = self._headers
        if config.extra_headers or self._endpoint.token is not None:
            headers = await self._request_headers(config)
        client = self._connections.client()
        started = perf_counter()
        try:
            status, answered, raw = await client.post(url, headers, encode(body))
        except BaseException:
            record_call(body, None, perf_counter() - started)
            raise
        seconds = perf_counter() - started
        if status >= 300:
            raw = self._scrubbed(raw)
        try:
            answer = decode(raw)
        except ValueError:
            text = raw.decode("utf-8", "replace")
            record_call(body, text, seconds, headers=answered)
            if status < 300:
                raise MalformedResponse(f"{self.model_name}: the response is not JSON: {text[:200]!r}") from None
            raise refusal(status, answered, text) from None
        record_call(body, answer, seconds, headers=answered)
        if 200 <= status < 300:
            return answer, answered
        error = refusal(status, answered, answer)
        output = refused_output(error, answer, self.model_name)
        if output is None:
            raise error
        return output, answered

    async def _request_headers(self, config: GenerateConfig) -> dict[str, str]:
        headers = dict(self._headers)
        if self._endpoint.token is not None:
            headers["Authorization"] = f"Bearer {await fresh_token(self._endpoint.token)}"
        headers.update(config.extra_headers or {})
        return headers

    def _scrubbed(self, raw: bytes) -> bytes:
        """``raw`` without the credential, which some services repeat in full when they refuse it."""
        secret = self._endpoint.credential
        return raw.replace(secret.encode(), b"[key]") if secret and len(secret) >= 8 else raw

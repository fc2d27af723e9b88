"""The models of Bedrock: each call in a worker thread, so that it runs on asyncio and on trio."""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from proctor.contracts import ModelAPI, Retry, record_call
from proctor.schema import ChatMessage, GenerateConfig, ModelOutput, ResponseSchema, ToolChoice, ToolInfo
from proctor_provider_bedrock._args import BedrockArgs
from proctor_provider_bedrock._cache import add_cache_points
from proctor_provider_bedrock._client import shared_client
from proctor_provider_bedrock._connections import Call
from proctor_provider_bedrock._errors import EXPIRED, BedrockError, classify, refused_output, translated
from proctor_provider_bedrock._family import model_family
from proctor_provider_bedrock._messages import converse_messages
from proctor_provider_bedrock._output import converse_output, plain
from proctor_provider_bedrock._place import find_place
from proctor_provider_bedrock._settings import (
    inference_config,
    is_long,
    model_fields,
    output_config,
    schema_tool,
    tool_config,
)
from proctor_provider_bedrock._stream import folded

__all__ = ["BedrockAPI"]


class BedrockAPI(ModelAPI):
    """One model on Bedrock.

    Args:
        name: a model id, an inference profile or an ARN.
        base_url: where requests go, when it is not the region's own address.
        api_key: an API key of Bedrock; without one the SDK finds credentials.
        args: the model arguments.

    Raises:
        PrerequisiteError: if there is no region or there are no credentials.
        UsageError: for a region or an address that can't be one.
    """

    def __init__(self, name: str, *, base_url: str | None, api_key: str | None, args: BedrockArgs) -> None:
        place = find_place(name, base_url, api_key, args)
        super().__init__(name, base_url=place.base_url)
        self._args = args
        self._key = place.connection_key()
        self._secrets = place.secrets
        self._family = args.family or model_family(name)
        self._client = shared_client(place, args)
        self._client.users.add(self)
        self._threads: tuple[object, anyio.CapacityLimiter] | None = None

    def connection_key(self) -> str:
        """A hash of credentials, region and address."""
        return self._key

    def classify(self, exc: BaseException) -> Retry:
        """By the name of Bedrock's exception; broken connections and unreadable replies are transient."""
        return classify(exc) or super().classify(exc)

    async def aclose(self) -> None:
        """Close the connections, unless other models use them too."""
        self._client.users.discard(self)
        if not self._client.users:
            self._client.close()  # waits for nothing, so that it also happens while the run is being cancelled

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """Send one request and return the reply.

        Raises:
            BedrockError: if Bedrock refused.
            ConnectionFailed: if there was no complete response.
            MalformedResponse: if the response is no reply.
            ValueError: for content that Converse does not take.
        """
        self._client.users.add(self)
        call, attempt = Call(dict(config.extra_headers or {})), _Attempt()
        started = perf_counter()
        try:
            await anyio.to_thread.run_sync(
                lambda: self._run(attempt, call, input, tools, tool_choice, config),
                abandon_on_cancel=True,
                limiter=self._limiter(),
            )
        except anyio.get_cancelled_exc_class():
            call.end()  # and with it the thread, which nobody waits for
            if attempt.request is not None:
                record_call(attempt.request, None, perf_counter() - started)
            raise
        if attempt.request is not None:
            record_call(attempt.request, attempt.response, attempt.seconds, headers=attempt.headers)
        if attempt.output is None:
            assert attempt.error is not None
            raise attempt.error
        return attempt.output

    def _limiter(self) -> anyio.CapacityLimiter:
        """As many threads as calls: the connection gate is the limit, wherever it moves, and a second queue would hide
        waiting from it. The back-end's own limiter, of 40 threads, is for other things."""
        loop = anyio.lowlevel.current_token()
        if self._threads is None or self._threads[0] != loop:
            self._threads = loop, anyio.CapacityLimiter(math.inf)
        return self._threads[1]

    def _run(
        self,
        attempt: _Attempt,
        call: Call,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> None:
        """In a worker thread: build the request (files are read), send it, read the reply."""
        if tool_choice == "none":
            tools = []
        try:
            schema = config.response_schema
            if self._args.structured_output == "native" or tools:
                schema = None  # it is asked for by outputConfig
            request = self._request(input, tools, tool_choice, config, schema)
            attempt.request = plain(request)
            body = self._send(attempt, request, call, config)
            form = None if schema is None else schema.name
            attempt.output = converse_output(body, self.model_name, tools, attempt.request_id, form)
        except Exception as error:
            self._note(attempt, translated(error, self._secrets))

    def _send(self, attempt: _Attempt, request: dict[str, Any], call: Call, config: GenerateConfig) -> dict[str, Any]:
        stream = is_long(config) if self._args.stream is None else self._args.stream
        started = perf_counter()
        try:
            response = self._client.send("converse_stream" if stream else "converse", request, call)
            meta = response.pop("ResponseMetadata", {})
            attempt.headers, attempt.request_id = meta.get("HTTPHeaders"), meta.get("RequestId")
            if stream:
                events = response["stream"]
                try:
                    response = folded(events)
                finally:
                    events.close()
        finally:
            attempt.seconds = perf_counter() - started
        attempt.response = plain(response)
        return response

    def _note(self, attempt: _Attempt, error: Exception) -> None:
        """Keep a failure, or the reply that it stands for."""
        attempt.error = error
        if not isinstance(error, BedrockError):
            return
        attempt.response = {"error": {"status": error.status, "code": error.code, "message": error.message}}
        attempt.output = refused_output(error, self.model_name)
        if error.code in EXPIRED:
            error.renewed = self._client.renew()

    def _request(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
        form: ResponseSchema | None,
    ) -> dict[str, Any]:
        """The arguments of Converse; ``form`` is a response schema that goes as a tool."""
        args, family, model = self._args, self._family, self.model_name
        system, messages = converse_messages(input, with_tools=bool(tools), family=family)
        request: dict[str, Any] = {"modelId": model, "messages": messages}
        if system:
            request["system"] = system
        fields = model_fields(config, family, model, bool(tools), tool_choice)
        if tools:
            request["toolConfig"] = tool_config(tools, tool_choice, said_elsewhere="tool_choice" in fields)
        elif form is not None:
            request["toolConfig"] = schema_tool(form)
        if config.response_schema is not None and form is None:
            request["outputConfig"] = output_config(config.response_schema)
        if inference := inference_config(config, family, model):
            request["inferenceConfig"] = inference
        if fields:
            request["additionalModelRequestFields"] = fields
        if args.guardrail_identifier:
            request["guardrailConfig"] = {
                "guardrailIdentifier": args.guardrail_identifier,
                "guardrailVersion": args.guardrail_version,
                "trace": args.guardrail_trace,
            }
        if args.performance:
            request["performanceConfig"] = {"latency": args.performance}
        if args.service_tier:
            request["serviceTier"] = {"type": args.service_tier}
        add_cache_points(request, config, family)
        return request


class _Attempt:
    """What became of one request."""

    __slots__ = ("error", "headers", "output", "request", "request_id", "response", "seconds")

    def __init__(self) -> None:
        self.request: dict[str, Any] | None = None
        self.response: Any = None
        self.headers: dict[str, str] | None = None
        self.request_id: str | None = None
        self.seconds: float | None = None
        self.output: ModelOutput | None = None
        self.error: Exception | None = None

"""Model providers with one fault each, as a plugin: ``test_faulty_components.py`` runs it as a module of tests.

Each is named after the check that it must fail. Where a fault would show in several checks, it is so narrow that it
does not.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from proctor.contracts import ModelAPI, ModelProvider, Retry, record_call
from proctor.hookspecs import hookimpl
from proctor.model import ModelOutput
from proctor.schema import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ContentReasoning,
    ContentText,
    ModelUsage,
    ToolCall,
    ToolInfo,
)
from proctor_testkit import FakeOpenAI, ModelProviderSuite

# Other ways to fail a check, which stands before the two lines.
VARIANTS = (
    "inputs__config",
    "inputs__tools",
    "no_secret__metadata",
    "unreachable__secret",
    "usage_counts__swapped",
)
FAULTS = ["faultless", *(one.id.partition(".")[2] for one in ModelProviderSuite.checks()), *VARIANTS]
STOPS = {"length": "max_tokens", "tool_calls": "tool_calls"}


class Refused(Exception):
    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(f"refused with {status}")
        self.status, self.headers = status, headers


class Unreadable(Exception):
    """It is no reply."""


class Wire:
    """One connection after another, kept between calls, in one event loop."""

    def __init__(self, fault: str, base_url: str) -> None:
        self.fault, self.address = fault, urlsplit(base_url)
        self.idle: list[SocketStream] = []
        self.leaked: list[SocketStream] = []

    async def post(self, key: str, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        stream = self.idle.pop() if self.idle else await self._connected(key)
        data = json.dumps(body).encode()
        head = (
            f"POST {self.address.path}/chat/completions HTTP/1.1\r\nhost: {self.address.netloc}\r\n"
            f"authorization: Bearer {key}\r\ncontent-length: {len(data)}\r\n\r\n"
        )
        try:
            await stream.send(head.encode() + data)
            answer = await self._answer(BufferedByteReceiveStream(stream))
        except BaseException:
            if self.fault == "cancel_closes":
                self.leaked.append(stream)
            else:
                await anyio.aclose_forcefully(stream)
            raise
        if self.fault == "keeps_connections":
            await stream.aclose()
        else:
            self.idle.append(stream)
        return answer

    async def _connected(self, key: str) -> SocketStream:
        try:
            return await anyio.connect_tcp(str(self.address.hostname), int(self.address.port or 0))
        except OSError as error:
            said = f"unreachable with {key}" if self.fault == "unreachable__secret" else "unreachable"
            raise Refused(404, {}) if self.fault == "unreachable" else ConnectionError(said) from error

    async def _answer(self, stream: BufferedByteReceiveStream) -> tuple[int, dict[str, str], bytes]:
        try:
            head = (await stream.receive_until(b"\r\n\r\n", 65536)).decode()
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError) as error:
            raise Refused(404, {}) if self.fault == "reset" else ConnectionError("reset") from error
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        try:
            body = (
                await stream.receive_exactly(int(headers["content-length"]))
                if headers["content-length"] != "0"
                else b""
            )
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError) as error:
            raise Refused(404, {}) if self.fault == "cut_off" else ConnectionError("cut off") from error
        return int(first.split(" ")[1]), headers, body

    async def aclose(self) -> None:
        while self.idle:
            await self.idle.pop().aclose()


class FaultyAPI(ModelAPI):
    def __init__(self, fault: str, name: str, *, base_url: str | None, api_key: str | None, config: Any, args: Any):
        super().__init__(name, base_url=base_url, config=None)
        self.fault, self.key = fault, api_key or ""
        self.wires: dict[Any, Wire] = {}
        self.calls = self.inside = 0
        self.closed = self.broken = False
        self.limiter: anyio.CapacityLimiter | None = None

    def connection_key(self) -> str:
        key = self.hash_key("faulty", self.key, self.base_url)
        return f"{key}{id(self)}" if self.fault == "connection_key" else key

    def __repr__(self) -> str:
        return self.key if self.fault == "no_secret" else super().__repr__()

    def wire(self) -> Wire:
        loop = anyio.lowlevel.current_token()
        if self.fault == "loops" and self.wires and loop not in self.wires:
            raise RuntimeError("made in another event loop")
        if loop not in self.wires:
            self.wires[loop] = Wire(self.fault, str(self.base_url))
        return self.wires[loop]

    async def aclose(self) -> None:
        if self.closed and self.fault == "close":
            raise RuntimeError("closed twice")
        self.closed = True
        await self.wire().aclose()

    def classify(self, exc: BaseException) -> Retry:
        if isinstance(exc, Unreadable):
            return Retry("permanent" if self.fault == "garbled" else "transient")
        if not isinstance(exc, Refused):
            return super().classify(exc)
        kind: Any = "rate_limit" if exc.status == 429 else "transient" if exc.status >= 500 else "permanent"
        return Retry(kind, self._wait(exc.headers))

    def _wait(self, headers: Mapping[str, str]) -> float | None:
        milliseconds, said = headers.get("retry-after-ms"), headers.get("retry-after")
        if milliseconds is not None and self.fault != "retry_after_ms":
            return float(milliseconds) / 1000
        if said is not None and said.isdigit():
            return None if self.fault == "retry_after" else float(said)
        if said is not None and self.fault != "retry_after_date":
            return parsedate_to_datetime(said).timestamp() - time.time()
        return 1.0 if self.fault == "no_wait" else None

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: Any, config: Any
    ) -> ModelOutput:
        if self.broken:
            raise RuntimeError("it never came back")
        self.inside += 1
        alone = self.inside == 1
        self._harm(input, tools, config)
        try:
            with anyio.CancelScope(shield=self.fault == "cancel_waiting" and len(self.wires) == 0):
                output = await self._call(self._body(input, tools, tool_choice, config))
        except anyio.get_cancelled_exc_class():
            self.broken = self.fault == "cancel" or (self.fault == "timeout" and self.calls > 1)
            raise
        finally:
            self.inside -= 1
        if self.fault == "concurrent" and not alone:
            output = ModelOutput.from_content(self.model_name, "")
        if self.fault == "conversation" and len(input) == 4:
            input[0].content = "changed"
        return output

    def _harm(self, input: list[ChatMessage], tools: list[ToolInfo], config: Any) -> None:
        if self.fault == "unblocked":
            time.sleep(0.3)
        elif self.fault == "inputs":
            input.append(input[-1])
        elif self.fault == "inputs__tools":
            tools.clear()
        elif self.fault == "inputs__config":
            config.temperature = 1.0

    async def _call(self, body: dict[str, Any]) -> ModelOutput:
        self.calls += 1
        if self.fault == "pool" or (self.fault == "overlap" and self.inside <= 5):
            self.limiter = self.limiter or anyio.CapacityLimiter(10 if self.fault == "pool" else 1)
            async with self.limiter:
                status, headers, raw = await self.wire().post(self.key, body)
        else:
            status, headers, raw = await self.wire().post(self.key, body)
        if status == 400 and self.fault == "no_retry":
            status, headers, raw = await self.wire().post(self.key, body)
        if status == 200 and self.fault == "one_request":
            await self.wire().post(self.key, body)
        if status == 401 and self.fault == "not_logged":
            logging.getLogger("faulty").info("refused %s", self.key)
        sent = {**body, "key": self.key} if self.fault == "raw_call" and status == 200 else body
        if self.fault != "raw_failure" or status == 200:
            record_call(sent, raw.decode(), headers=headers)
        if status != 200:
            raise Refused(status, headers)
        try:
            return self._output(json.loads(raw))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise Unreadable(raw) from error

    def _body(self, input: list[ChatMessage], tools: list[ToolInfo], choice: Any, config: Any) -> dict[str, Any]:
        messages = list(self._messages(input))
        if self.fault == "tool_results" and len(messages) == 4:
            messages[2:] = reversed(messages[2:])
        body: dict[str, Any] = {"model": self.model_name, "messages": messages}
        if tools:
            body["tools"] = [{"type": "function", "function": tool.model_dump(exclude_none=True)} for tool in tools]
            body["tool_choice"] = choice if isinstance(choice, str) else {"function": {"name": choice.name}}
            if self.fault == "tool_choice" and choice == "any":
                body["tool_choice"] = "auto"
        if config.temperature is not None and self.fault != "settings":
            body["temperature"] = config.temperature
        if config.max_tokens:
            body["max_tokens"] = config.max_tokens
        return body

    def _messages(self, input: list[ChatMessage]) -> Iterator[dict[str, Any]]:
        for message in input:
            made: dict[str, Any] = {"role": message.role, "content": message.text}
            if isinstance(message, ChatMessageTool):
                made["tool_call_id"] = message.tool_call_id
            if isinstance(message, ChatMessageAssistant):
                if message.tool_calls:
                    made["tool_calls"] = [call.model_dump(exclude_none=True) for call in message.tool_calls]
                for part in message.content if isinstance(message.content, list) else ():
                    if isinstance(part, ContentReasoning):
                        thought = part.reasoning
                        made["reasoning_content"] = " ".join(thought.split()) if self.fault == "reasoning" else thought
            yield made

    def _output(self, body: dict[str, Any]) -> ModelOutput:
        said = body["choices"][0]["message"]
        calls = [self._tool_call(call) for call in said.get("tool_calls", ())]
        if self.fault == "parallel_tools":
            calls = [call.model_copy(update={"id": "call"}) for call in calls]
        content: Any = said["content"] or ""
        if said.get("reasoning_content"):
            content = [ContentReasoning(reasoning=said["reasoning_content"]), ContentText(text=content)]
        message = ChatMessageAssistant(content=content, tool_calls=calls or None)
        choice = ChatCompletionChoice(message=message)
        output = ModelOutput(model="" if self.fault == "generate" else body["model"], choices=[choice])
        stop = STOPS.get(body["choices"][0]["finish_reason"], "stop")
        if self.fault == "max_tokens" and stop == "max_tokens":
            stop = "stop"
        choice.stop_reason = "end_turn" if self.fault == "stop_reason" and stop == "stop" else stop  # type: ignore[assignment]
        usage = body["usage"]
        asked, said_tokens = usage["prompt_tokens"], usage["completion_tokens"]
        if self.fault == "usage_counts":
            asked, said_tokens = 20, 10
        elif self.fault == "usage_counts__swapped":
            asked, said_tokens = said_tokens, asked
        total = asked + (0 if self.fault == "usage" else said_tokens)
        output.usage = ModelUsage(input_tokens=asked, output_tokens=said_tokens, total_tokens=total)
        if self.fault == "no_secret__metadata":
            output.metadata = {"authorization": self.key}
        return output

    def _tool_call(self, call: dict[str, Any]) -> ToolCall:
        arguments = json.loads(call["function"]["arguments"])
        if self.fault == "tools":
            arguments = {name: str(value) for name, value in arguments.items()}
        return ToolCall(id=call["id"], function=call["function"]["name"], arguments=arguments)


@hookimpl
def proctor_model_providers() -> Sequence[ModelProvider]:
    return [
        ModelProvider(
            name=fault,
            factory=partial(FaultyAPI, fault),
            adaptive=False,
            backends=("asyncio", "trio") if fault == "record" else ("asyncio",),
        )
        for fault in FAULTS
    ]


class Faulty(ModelProviderSuite):
    capabilities = frozenset(
        {
            "usage",
            "max_tokens",
            "server",
            "tools",
            "reasoning",
            "retry_after_date",
            "retry_after_ms",
            "faults",
        }
    )
    backends = ("asyncio",)

    @classmethod
    def component(cls) -> str:
        return cls.__name__.removeprefix("Test_")

    @pytest.fixture
    def server(self) -> Iterator[FakeOpenAI]:
        with FakeOpenAI() as server:
            yield server


for _fault in FAULTS:
    globals()[f"Test_{_fault}"] = type(f"Test_{_fault}", (Faulty,), {"model": f"{_fault}/m", "__module__": __name__})

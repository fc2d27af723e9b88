"""The mock provider: scripted answers, latency and failures, without a network."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias, TypeVar

import anyio

from proctor.contracts import MockArgs, ModelAPI, Retry, UsageError, record_call
from proctor.schema import ChatMessage, GenerateConfig, ModelOutput, ModelUsage, ToolChoice, ToolInfo

__all__ = ["MockAPI", "MockArgs", "MockError"]

_T = TypeVar("_T")
Reply: TypeAlias = str | ModelOutput
Script: TypeAlias = Callable[[list[ChatMessage], list[ToolInfo], ToolChoice, GenerateConfig], Reply | Awaitable[Reply]]


class MockError(Exception):
    """A failure that the mock was told to have."""


class MockAPI(ModelAPI):
    """Answers without asking anyone. The factory of the provider ``mock``.

    Args:
        name: the part of the model name after ``mock/``; any will do.
        args: what to answer, how fast, and when to fail.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        args: MockArgs | None = None,
    ) -> None:
        super().__init__(name, base_url=base_url, config=config)
        self._args = args or MockArgs()
        self._requests = 0
        self._answers = _read_answers(self._args.answers) if self._args.answers is not None else None
        self._script: Script | None = None
        self._outputs: Iterator[Reply] | None = None
        outputs = self._args.custom_outputs
        if callable(outputs):
            self._script = outputs
        elif isinstance(outputs, Iterable):
            self._outputs = iter([outputs] if isinstance(outputs, str) else outputs)

    def connection_key(self) -> str:
        """One gate for all mock models."""
        return self.hash_key("mock", None, self.base_url)

    def classify(self, exc: BaseException) -> Retry:
        """As ``failure`` and ``retry_after`` say."""
        if isinstance(exc, MockError):
            return Retry(self._args.failure, self._args.retry_after)
        return super().classify(exc)

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """The next scripted answer, after ``latency`` seconds."""
        number = self._requests = self._requests + 1
        args = self._args
        if args.latency > 0:
            await anyio.sleep(args.latency)
        if number <= args.failures or (args.failure_every and number % args.failure_every == 0):
            raise MockError(f"request {number} to {self.model_name} failed as told ({args.failure})")
        reply = await self._reply(number, input, tools, tool_choice, config)
        output = self._output(reply) if isinstance(reply, str) else reply
        if output.usage is None:
            output.__dict__["usage"] = _usage(input, output)  # as an attribute it would be validated again
        record_call({"model": self.model_name, "messages": len(input)}, {"completion": output.completion})
        return output

    def _output(self, text: str) -> ModelOutput:
        return ModelOutput.from_content(self.model_name, text)

    async def _reply(
        self,
        number: int,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> Reply:
        if self._script is not None:
            reply = self._script(input, tools, tool_choice, config)
            return await reply if inspect.isawaitable(reply) else reply
        if self._outputs is not None:
            try:
                return next(self._outputs)
            except StopIteration:
                raise UsageError(f"custom_outputs of mock/{self.model_name} ended before request {number}") from None
        default = f"Default output from mock/{self.model_name}"
        if isinstance(self._answers, dict):
            asked = next((message.text for message in reversed(input) if message.role == "user"), "")
            return self._answers.get(asked, self._answers.get("*", default))
        if self._answers:
            answer = self._answers[(number - 1) % len(self._answers)]
            return answer if isinstance(answer, str) else answer.model_copy(deep=True)
        return default


def _usage(input: list[ChatMessage], output: ModelOutput) -> ModelUsage:
    """Four characters a token, at least one: a rule of thumb, steady from run to run."""
    asked = sum([len(content if isinstance(content := message.content, str) else message.text) for message in input])
    input_tokens, output_tokens = asked // 4 + 1, len(output.completion) // 4 + 1
    total = input_tokens + output_tokens
    return ModelUsage.trusted(input_tokens=input_tokens, output_tokens=output_tokens, total_tokens=total)


def _some(answers: _T, file: str) -> _T:
    if not answers:
        raise UsageError(f"-M answers={file}: there is no answer in it; leave it out for the mock's own")
    return answers


def _read_answers(file: str) -> list[Reply] | dict[str, str]:
    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"-M answers={file}: cannot read the file ({error})") from None
    if text.lstrip()[:1] not in ("[", "{"):
        return [*_some(text.splitlines(), file)]
    try:
        data = _some(json.loads(text), file)
        if isinstance(data, dict):
            return {str(asked): str(answer) for asked, answer in data.items()}
        return [answer if isinstance(answer, str) else ModelOutput.model_validate(answer) for answer in data]
    except ValueError as error:
        raise UsageError(
            f"-M answers={file}: not JSON of answers ({error}); write an array of texts or model outputs, an object "
            "from prompt to answer, or plain text with one answer a line"
        ) from None

"""A model whose provider, clock and chance belong to the test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from proctor.concurrency import run_gates
from proctor.contracts import ModelAPI, Retry, record_call
from proctor.model import Model, Pacing
from proctor.schema import ChatMessage, GenerateConfig, ModelOutput, ModelUsage, ToolChoice, ToolInfo


class Refused(Exception):
    """A failure with the decision that it means."""

    def __init__(self, retry: Retry) -> None:
        super().__init__(f"refused ({retry.kind})")
        self.retry = retry


class ScriptedAPI(ModelAPI):
    """Does what its steps say, in turn: raises an exception, awaits a function, or answers with the text."""

    def __init__(self, *steps: Any, key: str = "scripted") -> None:
        super().__init__("scripted")
        self.steps = list(steps)
        self.key = key
        self.inputs: list[list[ChatMessage]] = []
        self.tools: list[list[ToolInfo]] = []
        self.configs: list[GenerateConfig] = []
        self.in_flight = 0
        self.peak = 0

    def connection_key(self) -> str:
        return self.key

    def classify(self, exc: BaseException) -> Retry:
        return exc.retry if isinstance(exc, Refused) else super().classify(exc)

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        self.inputs.append(list(input))
        self.tools.append(tools)
        self.configs.append(config)
        record_call({"attempt": len(self.inputs)}, {"ok": True}, 0.1, headers={"x-test": "yes"})
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0] if self.steps else "fine"
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            if isinstance(step, BaseException):
                raise step
            if callable(step):
                step = await step()
        finally:
            self.in_flight -= 1
        if isinstance(step, ModelOutput):
            return step
        output = ModelOutput.from_content("scripted", str(step))
        output.usage = ModelUsage(input_tokens=3, output_tokens=2, total_tokens=5)
        return output


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self.chance = 0.5
        self.while_asleep: Callable[[], Awaitable[None]] | None = None

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        if self.while_asleep is not None:
            await self.while_asleep()

    @property
    def pacing(self) -> Pacing:
        return Pacing(now=lambda: self.now, sleep=self.sleep, random=lambda: self.chance)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def scripted(clock: Clock) -> Callable[..., tuple[Model, ScriptedAPI]]:
    """``scripted(*steps, **model arguments)``: a model, with a fixed limit of connections, and its API."""

    def make(*steps: Any, config: GenerateConfig | None = None, **arguments: Any) -> tuple[Model, ScriptedAPI]:
        api = ScriptedAPI(*steps)
        arguments.setdefault("name", "test/scripted")
        arguments.setdefault("adaptive", False)
        return Model(api, config, pacing=clock.pacing, **arguments), api

    return make


@pytest.fixture
def refused() -> Callable[..., Refused]:
    """``refused(kind, after)``: an exception that means this."""
    return lambda kind, after=None: Refused(Retry(kind, after))


@pytest.fixture(autouse=True)
def _own_gates() -> Iterator[None]:
    with run_gates():
        yield

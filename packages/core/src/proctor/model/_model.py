"""Model: what a solver calls."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from proctor.concurrency import (
    Connections,
    Gate,
    Wish,
    connections,
)
from proctor.contracts import DEFAULT_CONNECTIONS, ModelAPI, RateLimits, UsageError
from proctor.limits import LimitExceededError, SampleLimits, sample_limits
from proctor.log import Transcript, now_iso, transcript
from proctor.model._active import active_model
from proctor.model._generate import Generation
from proctor.model._input import collapse, conversation, tool_infos
from proctor.model._prices import model_prices
from proctor.model._record import loggable_config, model_logging
from proctor.model._retry import Pacing
from proctor.monitor import activity
from proctor.plugins import contained
from proctor.schema import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    ModelEvent,
    ModelOutput,
    ToolChoice,
    ToolInfo,
    redact_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Model"]

logger = logging.getLogger("proctor.model")

_KEPT_ERROR = 2000  # characters that are kept of an error; credentials are looked for in them
_LONGEST_ERROR = 300  # characters that are shown of it


class _Own:
    """The gates of a model alone, by limit: its forms (in a role, in several units) share that of their limit."""

    __slots__ = ("gates",)

    def __init__(self) -> None:
        self.gates: dict[int, Gate] = {}


class _Counts:
    """What a model's requests came to; its forms share it until one of them counts anew."""

    __slots__ = ("retries", "trouble", "until")

    def __init__(self) -> None:
        self.retries: dict[str, int] = {}
        self.trouble: str | None = None
        self.until = 0.0


class Model:
    """A model that can be asked: a provider's API with the settings, the gate, the retries and the record around it.

    Args:
        api: what sends one request.
        config: settings of all levels above the call, already merged.
        name: ``provider/model``.
        role: the role that it plays in the task (``grader``), or None.
        max_connections: the provider's own limit of requests at once.
        own_connections: a smaller limit of this model alone, inside the one it shares with others on its credential.
        adaptive: whether the limit may follow the provider's answers.
        args: the model arguments (``-M``), for the log.
        pacing: where time and chance come from.
    """

    def __init__(
        self,
        api: ModelAPI,
        config: GenerateConfig | None = None,
        name: str | None = None,
        *,
        role: str | None = None,
        max_connections: int | None = None,
        own_connections: int | None = None,
        adaptive: bool = True,
        args: Mapping[str, Any] | None = None,
        pacing: Pacing | None = None,
    ) -> None:
        self.api = api
        self.config = config or GenerateConfig()
        self.name = name or api.model_name
        self.role = role
        self.args = dict(args or {})
        self.pacing = pacing or Pacing()
        self._max_connections = max_connections or DEFAULT_CONNECTIONS
        self._own_connections = own_connections
        self._adaptive = adaptive
        self._own = _Own()
        self._counts = _Counts()
        self._key: str | None = None
        self._headers: Mapping[str, str] | None = None

    def with_config(
        self,
        config: GenerateConfig,
        *,
        role: str | None = None,
        own_connections: int | None = None,
        counts_apart: bool = False,
    ) -> Model:
        """This model with ``config`` laid over its settings; the API and its connections are shared.

        Args:
            config: settings that go before its own.
            role: the role that it plays; its own when not given.
            own_connections: a smaller limit for it alone, shared by all its forms with the same number.
            counts_apart: count retries and errors of the new form by themselves, not with those of this one.
        """
        model = copy(self)
        model.config = self.config.merge(config)
        model.role = role or self.role
        model.args = dict(self.args)
        model._own_connections = own_connections or self._own_connections
        model._headers = None
        if counts_apart:
            model._counts = _Counts()
        return model

    @property
    def retries(self) -> Mapping[str, int]:
        """How many requests were sent again, by what made it necessary: ``rate_limit`` or ``transient``."""
        return self._counts.retries

    @property
    def last_error(self) -> str | None:
        """Why the latest failed request failed, without credentials and cut to a line; None when none did."""
        said = self._counts.trouble
        if said is None:
            return None
        line = " ".join(redact_text(said).split())
        return line if len(line) <= _LONGEST_ERROR else line[: _LONGEST_ERROR - 3] + "..."

    @property
    def waits_until(self) -> float | None:
        """When the longest wait for a retry that is under way will be over, in seconds of the wall clock."""
        return self._counts.until if self._counts.until > time.time() else None

    @property
    def own_gate(self) -> Gate | None:
        """The gate of this model alone, inside the connections that it shares; None where there is none so far."""
        return None if self._own_connections is None else self._own.gates.get(self._own_connections)

    async def generate(
        self,
        input: str | Sequence[ChatMessage],
        tools: Sequence[Any] = (),
        tool_choice: ToolChoice | None = None,
        config: GenerateConfig | None = None,
        cache: bool = False,
    ) -> ModelOutput:
        """Ask the model and return its reply.

        Args:
            input: the conversation, or the text of one user message.
            tools: what the model may call: ``ToolInfo`` objects or tools made with ``@tool``.
            tool_choice: ``auto`` (the default), ``any``, ``none`` or one function.
            config: settings of this call, laid over the model's.
            cache: whether an earlier reply to the same question may be used. Replies are not kept yet: every request is
                sent, and a warning says so once.

        Raises:
            TimeoutError: when ``timeout`` or, in all attempts, ``attempt_timeout`` ran out.
            UsageError: when the cost is limited and this model has no price.
            LimitExceededError: when the reply used more than the sample may.
            Exception: what the provider raised, when it is permanent or the retries are used up.
        """
        config = self.config if config is None else self.config.merge(config)
        if cache or config.cache:
            _warn_uncached()
        messages = conversation(input, config)
        infos = tool_infos(tools) if tools else []
        tool_choice = tool_choice or "auto"
        api = self.api
        if api.collapse_user_messages or api.collapse_assistant_messages:
            messages = collapse(messages, users=api.collapse_user_messages, assistants=api.collapse_assistant_messages)
        limits = sample_limits()
        if limits is not None:
            await self._may(limits, 1 if isinstance(input, str) else len(input))
        call = Generation(self, messages, infos, tool_choice, config, limits)
        log = transcript()
        event = self._begin(log, messages, infos, tool_choice, config)
        doer = activity()
        if doer is not None:
            doer.running[call] = None
        try:
            output = await call.run()
        except BaseException as error:
            self._failed(event, call, error)
            raise
        finally:
            if doer is not None:
                del doer.running[call]
        usage = output.usage
        if usage is not None and usage.total_cost is None and (price := model_prices().find(self.name)) is not None:
            usage.total_cost = price.dollars(usage)
        self._completed(event, call, output)
        self._headers = call.record.headers
        if limits is not None and usage is not None:
            limits.record_usage(self.name, self.role, usage)
        return output

    async def _may(self, limits: SampleLimits, messages: int) -> None:
        """Ask the limits that hold here for one more turn."""
        try:
            if limits.cost_limited and model_prices().find(self.name) is None:
                raise UsageError(
                    f"what the model {self.name} costs is not known, and the cost is limited: name its price in the "
                    "file of --model-cost-config"
                )
            limits.begin_turn(messages)
        except LimitExceededError:
            # Whoever swallows the error and asks again, for ever, must not keep everybody else from running.
            await anyio.lowlevel.checkpoint()
            raise

    def _begin(
        self,
        log: Transcript,
        messages: list[ChatMessage],
        infos: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelEvent:
        # Trusted: validation would look at every message again at every turn.
        event = ModelEvent.trusted(
            model=self.name,
            role=self.role,
            input=model_logging().input(messages),
            tools=list(infos),
            tool_choice=tool_choice,
            config=loggable_config(config) if config.extra_headers or config.extra_body else config,
            output=ModelOutput.trusted(choices=[]),
            pending=True,
        )
        log.event(event)
        return event

    def _completed(self, event: ModelEvent, call: Generation, output: ModelOutput) -> None:
        # By __dict__, since pydantic's attribute setter costs more than all the rest.
        event.__dict__.update(
            output=output,
            call=model_logging().call(call.record, self.name, call.messages, output, event.config.extra_body),
            retries=call.retries or None,
            working_time=output.time,
            completed=now_iso(),
            pending=None,
        )

    def _failed(self, event: ModelEvent, call: Generation, error: BaseException) -> None:
        message = ChatMessageAssistant(content="", model=self.name, source="generate")
        event.output = ModelOutput(model=self.name, choices=[ChatCompletionChoice(message=message)])
        if isinstance(error, anyio.get_cancelled_exc_class()):
            event.error = f"Cancelled by {'limit' if _out_of_time(call.limits) else 'system'}"
        elif isinstance(error, LimitExceededError):
            event.error = "Cancelled by limit"
        else:
            event.error = redact_text(f"{type(error).__name__}: {error}")
            event.call = model_logging().call(call.record, self.name, call.messages, None, event.config.extra_body)
        event.retries = call.retries or None
        event.pending = None

    def connections(self) -> tuple[Gate | None, Connections]:
        """The gate of this model alone (None without one that is smaller) and the connections that it shares."""
        if self._key is None:
            with contained("model_providers", self.name.partition("/")[0]):
                self._key = self.api.connection_key()
        line = connections(self._key, self.name, self._wish)
        limit = self._own_connections
        if limit is None:
            return None, line
        active = active_model.get()
        most = None if line.adaptive else line.gate.limit
        if active is None or active.api is self.api or (most is not None and most <= limit):
            return None, line
        gates = self._own.gates
        if limit not in gates:
            gates[limit] = Gate(f"{self.name} (own)", limit)
        return gates[limit], line

    def _wish(self) -> Wish:
        config = self.config
        return Wish(config.max_connections, config.adaptive_connections, self._max_connections, self._adaptive)

    def count_retry(self, kind: str, wait: float = 0.0) -> None:
        """Count a repeated request, by what made it necessary; ``wait``: seconds until it is sent."""
        self._counts.until = max(self._counts.until, time.time() + wait)
        retries = self._counts.retries
        retries[kind] = retries.get(kind, 0) + 1

    def note_error(self, error: BaseException) -> str:
        """Keep what a failed request said, for whoever wants to know why nothing moves."""
        said = self._counts.trouble = f"{type(error).__name__}: {error}"[:_KEPT_ERROR]
        return said

    def rate_limits(self) -> RateLimits | None:
        """What the provider said about its quota in its latest answer."""
        return None if self._headers is None else self.api.limits(self._headers)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Model({self.name!r})"


@functools.cache
def _warn_uncached() -> None:
    logger.warning("cache was asked for, but replies are not cached in this version: every request is sent")


def _out_of_time(limits: SampleLimits | None) -> bool:
    """Whether it is a limit of the sample that cancels what runs in it."""
    if limits is None:
        return False
    return limits.overtime()[1] >= 0

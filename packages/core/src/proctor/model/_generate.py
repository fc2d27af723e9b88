"""One generate call: gate, attempts, waits, and the event that tells of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

from proctor.concurrency import Connections, Gate, Turn
from proctor.contracts import CallRecord, Retry, current_call
from proctor.limits import SampleLimits
from proctor.model._retry import (
    DEFAULT_ATTEMPT_TIMEOUT,
    DEFAULT_MAX_RETRIES,
    AttemptTimeout,
    GenerateTimeout,
    backoff,
)
from proctor.monitor import Operation, OperationKind, loop_watch
from proctor.schema import ChatMessage, GenerateConfig, ModelOutput, ToolChoice, ToolInfo, quick_id, redact_text

if TYPE_CHECKING:
    from proctor.model._model import Model

__all__ = ["Generation"]


_NOTHING_SENT = CallRecord()


class WrongOutputError(TypeError):
    """A provider's own fault, which no retry mends."""


def _spell(value: object) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__!r}"


class Generation:
    """The attempts of one generate call; ``retries`` and ``record`` (the last raw call) can be read at any time.

    What it does at the moment (``operation``) is noted in passing: it is asked for from another thread, if ever.
    """

    __slots__ = (
        "_config",
        "_infos",
        "_model",
        "_request",
        "_since",
        "_spent",
        "_stage",
        "_tool_choice",
        "_trouble",
        "_until",
        "limits",
        "messages",
        "record",
        "retries",
    )

    def __init__(
        self,
        model: Model,
        messages: list[ChatMessage],
        infos: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
        limits: SampleLimits | None,
    ) -> None:
        self.record = _NOTHING_SENT
        self.retries = 0
        self._model = model
        self.messages = messages
        self._infos = infos
        self._tool_choice = tool_choice
        self._config = config
        self.limits = limits
        self._request: int | None = None  # the number that the sample's clock has for the attempt
        self._spent = 0.0  # seconds since the first send, waits for gates left out
        self._stage: OperationKind = "gate"
        self._since = 0.0  # no time yet
        self._trouble = ""  # what the latest failed attempt said

    async def run(self) -> ModelOutput:
        """Send until there is an answer, a permanent error or no budget left."""
        pacing = self._model.pacing
        own, line = self._model.connections()
        while True:
            await self._admitted(own, line)
            try:
                self._since = started = pacing.now()
                self._stage = "model"
                request = line.sent()
                try:
                    output = await self._attempt()
                except Exception as failure:
                    error, retry = failure, self._verdict(failure)
                    line.failed(request, retry)
                    self._hear(line)
                except BaseException:
                    line.dropped(request)
                    raise
                else:
                    seconds = pacing.now() - started
                    line.answered(request, output.usage, first=not self.retries)
                    self._hear(line)
                    break
            finally:
                _give_back(own, line)
            delay = self._before_retry(error, retry, pacing.now() - started)
            self._since = pacing.now()
            self._until = self._since + delay
            self._stage = "retry"
            with line.away(retry), self._waiting():
                await pacing.sleep(delay)
            self._spent += delay
        if output.time is None:
            output.__dict__["time"] = seconds  # as an attribute it would cost ten times as much
        for choice in output.choices:
            if choice.message.id is None:
                choice.message.__dict__["id"] = quick_id()
        return output

    def operation(self) -> Operation:
        """What it does now."""
        stage, now = self._stage, self._model.pacing.now()
        return Operation(
            stage,
            self._model.name,
            max(0.0, now - (self._since or now)),
            attempt=self.retries + 1,
            left=max(0.0, self._until - now) if stage == "retry" else None,
            error=redact_text(self._trouble),
        )

    async def _admitted(self, own: Gate | None, line: Connections) -> None:
        """Take a place in each gate at a moment when the pace lets a request leave.

        Who waits for the pace holds no place meanwhile, and is charged for the request only with a place in hand: what
        was paid for long before it leaves would make a burst.
        """
        turn: Turn | None = None
        booked = False
        try:
            while True:
                if own is not None and not own.try_acquire():
                    await self._queue(own)
                try:
                    if not line.gate.try_acquire():
                        await self._queue(line.gate)
                except BaseException:
                    if own is not None:
                        own.release()
                    raise
                if not booked:
                    turn, booked = line.book(), True
                seconds = line.wait(turn)
                if seconds <= 0:
                    return
                _give_back(own, line)
                if self._stage != "pace":
                    self._since, self._stage = self._model.pacing.now(), "pace"
                with line.slowed(), self._waiting():
                    await self._model.pacing.sleep(seconds)
        except BaseException:
            if booked:
                line.dropped(None)
            raise

    def _hear(self, line: Connections) -> None:
        """Let the pace follow what the answer's headers say of the quota."""
        headers = self.record.headers
        if headers:
            try:
                limits = self._model.api.limits(headers)
            except Exception:  # a header nobody thought of must not fail an answer that is there
                limits = None
            line.heard(limits)

    async def _queue(self, gate: Gate) -> None:
        self._since, self._stage = self._model.pacing.now(), "gate"
        with self._waiting():
            await gate.queue()

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        if self.limits is None:
            yield
        else:
            with self.limits.pause():
                yield

    async def _attempt(self) -> ModelOutput:
        """One request, with the clock that runs out first: the attempt's or that of the whole call."""
        config = self._config
        limit = DEFAULT_ATTEMPT_TIMEOUT if config.attempt_timeout is None else config.attempt_timeout
        last = config.timeout is not None and config.timeout - self._spent <= limit
        if last and config.timeout is not None:
            limit = config.timeout - self._spent
        self.record = CallRecord()
        token = current_call.set(self.record)
        decided = True  # what a failure was, and with it whether this was work or a wait, is for _before_retry to say
        self._request = None if self.limits is None else self.limits.request_sent()
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + limit) as scope:
                output: object = await self._model.api.generate(self.messages, self._infos, self._tool_choice, config)
                if not isinstance(output, ModelOutput):
                    raise WrongOutputError(
                        f"{self._model.name}: generate() returned {_spell(output)}, not a ModelOutput"
                    )
                return output
        except Exception:
            decided = False
            raise
        finally:
            current_call.reset(token)
            if scope.cancelled_caught:
                if last:
                    raise GenerateTimeout(
                        f"{self._model.name}: no answer within the timeout of {config.timeout:g} s "
                        f"({self.retries} retries){self._loop_stood_still()}; raise --timeout to wait longer"
                    )
                raise AttemptTimeout(
                    f"{self._model.name}: no answer within {limit:g} s of sending{self._loop_stood_still()}; "
                    "raise --attempt-timeout to wait longer"
                )
            if decided and self.limits is not None and self._request is not None:
                self.limits.request_ended(self._request)
        raise AssertionError("unreachable")

    def _loop_stood_still(self) -> str:
        """What must not be blamed on the provider: time in which nobody here could have read its answer."""
        watch = loop_watch()
        if watch is None:
            return ""
        watch.beaten()
        seconds, place = watch.stood_still(self._since)
        if not seconds:
            return ""
        return f", but the event loop stood still for {seconds:.1f} s of it{f', in {place}' if place else ''}"

    def _verdict(self, error: Exception) -> Retry:
        if isinstance(error, (GenerateTimeout, WrongOutputError)):
            return Retry("permanent")
        if isinstance(error, AttemptTimeout):
            return Retry("transient")
        try:
            retry: object = self._model.api.classify(error)
            if isinstance(retry, Retry):
                return retry
            error.add_note(f"{self._model.name}: classify() returned {_spell(retry)}, not a Retry")
            return Retry("permanent")
        except Exception as fault:  # the provider's own; what it was to look at is what the sample fails with
            error.add_note(f"{self._model.name} could not say what this means: {type(fault).__name__}: {fault}")
            return Retry("permanent")

    def _before_retry(self, error: Exception, retry: Retry, seconds: float) -> float:
        """Seconds until the next attempt may be sent; raises ``error`` when it is for good."""
        self._spent += seconds
        self._trouble = self._model.note_error(error)
        if self.limits is not None and self._request is not None:
            # A failed attempt is a wait for the provider, not work of the sample.
            self.limits.request_ended(self._request, failed=retry.kind != "permanent")
        if retry.kind == "permanent":
            raise error
        budget = DEFAULT_MAX_RETRIES if self._config.max_retries is None else self._config.max_retries
        if self.retries >= budget:
            error.add_note(f"gave up after {self.retries + 1} attempts; raise --max-retries to try longer")
            raise error
        self.retries += 1
        pacing = self._model.pacing
        delay = backoff(self.retries, retry.after, pacing.random())
        timeout = self._config.timeout
        if timeout is not None and self._spent + delay >= timeout:
            raise GenerateTimeout(
                f"{self._model.name}: the timeout of {timeout:g} s ends before the next retry, {delay:.1f} s from now; "
                f"the last error was {type(error).__name__}: {error}"
            ) from error
        self._model.count_retry(retry.kind, delay)
        return delay


def _give_back(own: Gate | None, line: Connections) -> None:
    line.gate.release()
    if own is not None:
        own.release()

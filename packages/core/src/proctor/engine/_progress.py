"""What a run shows of itself: counters that the loop and the writers change and a screen's thread reads."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextvars import copy_context

from proctor.concurrency import Gate, gates
from proctor.contracts import (
    GateSnapshot,
    MetricSnapshot,
    RunSnapshot,
    UnitSnapshot,
    UnitStatus,
)
from proctor.display import error_place, error_text, unit_from_log
from proctor.engine._unit import Unit
from proctor.log import Patience, error_kind
from proctor.model import Model
from proctor.monitor import Activity
from proctor.sandbox import exec_gates, sandbox_gates
from proctor.schema import EvalError, EvalLog, EvalSample, EvalSampleSummary

__all__ = ["RunProgress", "UnitProgress"]

_LONG_WAIT = 30.0  # seconds left, of which a screen says when they are over
_EXAMPLES = 8  # kinds of errors of which one is shown


class UnitProgress:
    """The counters of one unit. ``done`` counts acknowledged samples only; each has one thread that writes it."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.max_samples = unit.max_samples
        """Samples at once, as somebody may have changed it since."""
        self.patience = Patience()
        """How its log waits for space."""
        self.unfinished: dict[Activity, None] = {}
        """What the samples that are under way do."""
        self.status: UnitStatus = "waiting"
        self.started = 0
        self.recorded = 0
        self.done = 0
        self.errors: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.retried = 0
        self.outcomes: Counter[str] = Counter()
        self.input_tokens = 0
        self.output_tokens = 0
        self.results: tuple[MetricSnapshot, ...] = ()
        self.location = ""
        self.error = ""
        self.error_place = ""
        self.next = ""
        self.seconds: float | None = None
        self._metrics: Callable[[], tuple[tuple[str, float], ...]] = tuple
        self._allowed: Callable[[], int] | None = None
        self._fill: Callable[[], None] | None = None

    def on_metrics(self, running: Callable[[], tuple[tuple[str, float], ...]]) -> None:
        """``running`` tells the scores so far, on any thread."""
        self._metrics = running

    def on_samples(self, allowed: Callable[[], int], fill: Callable[[], None]) -> None:
        """The unit runs: ``allowed`` tells how many samples may run at once, ``fill`` starts those that may now."""
        self._allowed, self._fill = allowed, fill

    @property
    def samples(self) -> int | None:
        """How many samples may run at once, once the unit runs."""
        return None if self._allowed is None else self._allowed()

    @property
    def samples_name(self) -> str:
        """What the limit of samples at once is called."""
        return f"samples of {self.unit.title}"

    @property
    def active(self) -> bool:
        """Whether it has begun and has not ended."""
        return self.status in ("running", "scoring")

    def set_max_samples(self, limit: int) -> None:
        """Change how many samples may run at once, now or when the unit begins."""
        self.max_samples = limit
        if self._fill is not None:
            self._fill()

    def add(self, sample: EvalSample | EvalSampleSummary) -> None:
        """Count the tokens of a finished sample."""
        for usage in sample.model_usage.values():
            self.input_tokens += usage.all_input_tokens
            self.output_tokens += usage.output_tokens

    def failed(self, error: EvalError) -> None:
        """Keep the first error of each kind to show."""
        kind = error_kind(error)
        if kind not in self.examples and len(self.examples) < _EXAMPLES:
            self.examples[kind] = error_text(error, self.unit.task.folder)

    def finish(self, log: EvalLog, seconds: float | None) -> None:
        """Take over what the finished log says."""
        self.error = log.error.message if log.error else ""
        self.error_place = error_place(log.error, self.unit.task.folder) if log.error else ""
        self.seconds = seconds
        metrics = self._metrics()
        self._metrics = lambda: metrics  # what they were computed of can go
        final = unit_from_log(log)
        self.status = final.status
        self.next = final.next
        self.results = final.results
        self.outcomes = Counter(final.outcomes) or self.outcomes

    def take_over(self, log: EvalLog) -> None:
        """Show ``log``, which an earlier run completed, as the end of this unit."""
        final = unit_from_log(log)
        self.location = log.location
        self.started = self.recorded = self.done = final.done
        self.input_tokens, self.output_tokens = final.input_tokens, final.output_tokens
        self.finish(log, final.seconds)

    def snapshot(self) -> UnitSnapshot:
        """The counters as they are now."""
        return UnitSnapshot(
            name=self.unit.name,
            model=self.unit.model.name,
            status=self.status,
            total=self.unit.total,
            done=self.done,
            running=self.started - self.recorded,
            errors=dict(self.errors),
            metrics=self._metrics(),
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            retries=sum(sum(model.retries.values()) for model in self.models()),
            retry_cause=self._retry_cause(),
            retried=self.retried,
            error_examples=dict(self.examples),
            location=self.location,
            results=self.results,
            outcomes=dict(self.outcomes),
            seconds=self.seconds,
            error=self.error,
            error_place=self.error_place,
            label=self.unit.label,
            stalled=self.patience.stalled or "",
            next=self.next,
        )

    def models(self) -> list[Model]:
        """Its model, and those that play a role in it."""
        return [self.unit.model, *self.unit.roles.values()]

    def _retry_cause(self) -> str:
        """What the model said when a request to it failed last; else what one in a role said."""
        for model in self.models():
            if model.retries and model.last_error:
                said = f"{model.role}: {model.last_error}" if model.role else model.last_error
                until = model.waits_until
                if until is None or until - time.time() < _LONG_WAIT:
                    return said
                return f"waits until {time.strftime('%H:%M:%S', time.localtime(until))}: {said}"
        return ""


def _gate_snapshots(providers: Collection[str]) -> list[GateSnapshot]:
    """The gates in use. Models of a provider share one, which is named after the provider unless it has several."""
    used: list[Gate] = [*gates(), *sandbox_gates(), *exec_gates()]
    named = Counter(gate.name.partition("/")[0] for gate in used)

    def shown(name: str) -> str:
        provider, slash, _ = name.partition("/")
        return provider if slash and provider in providers and named[provider] == 1 else name

    return [GateSnapshot(shown(gate.name), gate.held, gate.room, gate.waiting) for gate in used]


class RunProgress:
    """The counters of all units, and the gates."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self.units = [UnitProgress(unit) for unit in units]
        self.models = list({id(model): model for unit in self.units for model in unit.models()}.values())
        """The models of all units, each once."""
        self._providers = frozenset(model.name.partition("/")[0] for model in self.models)
        # A copy of the run's context: gates are found through it, and the screen's thread has a context of its own.
        self._context = copy_context()
        self._started = time.monotonic()

    def begin_anew(self, index: int) -> None:
        """Set the counters of a unit that is run again back to nothing; a limit that was set by hand stays."""
        former = self.units[index]
        self.units[index] = UnitProgress(former.unit)
        self.units[index].max_samples = former.max_samples

    def own_gates(self) -> list[Gate]:
        """The gates of models that have a limit of their own inside the one that they share."""
        gates = {id(gate): gate for model in self.models if (gate := model.own_gate) is not None}
        return list(gates.values())

    def snapshot(self) -> RunSnapshot:
        """The run as it is now."""
        return RunSnapshot(
            units=tuple(unit.snapshot() for unit in self.units),
            gates=tuple(self._context.run(_gate_snapshots, self._providers)),
            elapsed=time.monotonic() - self._started,
        )

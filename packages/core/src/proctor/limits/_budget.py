"""What all samples of a run may use together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from proctor.schema import ModelUsage

__all__ = ["RunBudget", "run_budget", "use_budget"]


@dataclass(slots=True)
class RunBudget:
    """Tokens and dollars of a run, counted as the replies come in.

    Attributes:
        max_tokens: of all samples together; None = any number.
        max_cost: dollars; None = any amount.
        tokens: used so far.
        cost: dollars spent so far, as far as prices are known.
    """

    max_tokens: int | None = None
    max_cost: float | None = None
    tokens: int = 0
    cost: float = 0.0

    def add(self, usage: ModelUsage) -> None:
        """Count what a call used."""
        self.tokens += usage.total_tokens
        self.cost += usage.total_cost or 0.0

    @property
    def reached(self) -> str:
        """Why no further sample may start, such as ``max_cost: $1.02 of $1.00``; empty while they may."""
        if self.max_cost is not None and self.cost >= self.max_cost:
            return f"max_cost: ${self.cost:.4g} of ${self.max_cost:.4g}"
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            return f"max_tokens_total: {self.tokens:,} of {self.max_tokens:,} tokens"
        return ""


_current: ContextVar[RunBudget | None] = ContextVar("proctor_run_budget", default=None)


def run_budget() -> RunBudget | None:
    """The budget of the run that goes on here; None outside of any."""
    return _current.get()


@contextmanager
def use_budget(budget: RunBudget) -> Iterator[RunBudget]:
    """Make ``budget`` that of the code inside."""
    token = _current.set(budget)
    try:
        yield budget
    finally:
        _current.reset(token)

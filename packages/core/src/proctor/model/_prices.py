"""What models cost: prices in dollars per million tokens, from ``--model-cost-config``."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields
from typing import Any

from proctor.contracts import UsageError
from proctor.schema import ModelUsage

__all__ = ["ModelCost", "ModelPrices", "model_prices", "use_prices"]


@dataclass(frozen=True, slots=True)
class ModelCost:
    """The prices of a model, in dollars per million tokens.

    Args:
        input: of tokens that go in.
        output: of tokens that come out, those of reasoning included.
        input_cache_write: of tokens that are put into the provider's cache; without it they cost what input costs.
        input_cache_read: of tokens that come from there; likewise.
    """

    input: float
    output: float
    input_cache_write: float | None = None
    input_cache_read: float | None = None

    def dollars(self, usage: ModelUsage) -> float:
        """What a call costs that used so much."""
        write = self.input if self.input_cache_write is None else self.input_cache_write
        read = self.input if self.input_cache_read is None else self.input_cache_read
        total = usage.input_tokens * self.input + usage.output_tokens * self.output
        total += (usage.input_tokens_cache_write or 0) * write + (usage.input_tokens_cache_read or 0) * read
        return total / 1e6


class ModelPrices:
    """Prices by model: ``provider/model``, or a pattern (``openai/gpt-5*``); of several, the longest one holds."""

    def __init__(self, costs: Mapping[str, ModelCost] | None = None) -> None:
        self._costs = dict(costs or {})
        self._found: dict[str, ModelCost | None] = {}

    @classmethod
    def of(cls, table: Mapping[str, Any], where: str) -> ModelPrices:
        """The prices in a mapping of models to ``{input, output, input_cache_write, input_cache_read}``.

        Raises:
            UsageError: for anything else; ``where`` says in what it stands.
        """
        return cls({str(model): _cost(model, prices, where) for model, prices in table.items()})

    def table(self) -> dict[str, dict[str, float]]:
        """What ``of`` makes the same prices from."""
        return {
            model: {name: price for name, price in asdict(cost).items() if price is not None}
            for model, cost in self._costs.items()
        }

    def find(self, model: str) -> ModelCost | None:
        """The prices of ``model``; None when there are none."""
        if model not in self._found:
            self._found[model] = self._costs.get(model) or self._by_pattern(model)
        return self._found[model]

    def _by_pattern(self, model: str) -> ModelCost | None:
        fitting = [pattern for pattern in self._costs if fnmatch.fnmatchcase(model, pattern)]
        return self._costs[max(fitting, key=len)] if fitting else None


def _cost(model: object, prices: Any, where: str) -> ModelCost:
    known = [field.name for field in fields(ModelCost)]
    example = "{input: 1.25, output: 10, input_cache_read: 0.125}, in dollars per million tokens"
    if not isinstance(prices, Mapping):
        raise UsageError(f"{where}: the prices of {model} are {prices!r}: give {example}")
    unknown = [name for name in prices if name not in known]
    missing = [name for name in known[:2] if prices.get(name) is None]
    wrong = [name for name, price in prices.items() if price is not None and not _is_price(price)]
    if unknown or missing or wrong:
        what = [f"no {name}" for name in missing] + [f"an unknown {name!r}" for name in unknown]
        what += [f"{name}={prices[name]!r}, which is no price" for name in wrong]
        raise UsageError(f"{where}: the prices of {model} have {', '.join(what)}: give {example}")
    return ModelCost(**prices)


def _is_price(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf


_NONE = ModelPrices()
_current: ContextVar[ModelPrices] = ContextVar("proctor_model_prices", default=_NONE)


def model_prices() -> ModelPrices:
    """The prices that hold here."""
    return _current.get()


@contextmanager
def use_prices(prices: ModelPrices) -> Iterator[None]:
    """Let ``prices`` hold for the code inside."""
    token = _current.set(prices)
    try:
        yield
    finally:
        _current.reset(token)

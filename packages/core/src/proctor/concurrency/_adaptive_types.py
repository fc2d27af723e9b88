"""The bounds of an adaptive limit, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from proctor.contracts import DEFAULT_CONNECTIONS, UsageError

__all__ = ["AdaptiveLimits", "AdaptiveState", "LimitChange", "Reason", "Token"]

Token: TypeAlias = tuple[int, float, int]
"""What the controller knows a request by: its number, when it left, and how many were in flight with it."""

Reason: TypeAlias = Literal["slow_start", "steady_state_up", "rate_limit"]


@dataclass(frozen=True, slots=True)
class AdaptiveLimits:
    """Between which numbers of connections the limit moves, and where it starts.

    Raises:
        UsageError: unless 1 <= ``min`` <= ``start`` <= ``max``.
    """

    min: int = 1
    start: int = DEFAULT_CONNECTIONS
    max: int = 100

    def __post_init__(self) -> None:
        if not 1 <= self.min <= self.start <= self.max:
            raise UsageError(
                f"--adaptive-connections needs 1 <= min <= start <= max, not {self.min}, {self.start}, {self.max}"
            )

    @classmethod
    def of(cls, value: bool | int | Mapping[str, int] | None) -> AdaptiveLimits | None:
        """The limits that the setting ``adaptive_connections`` says; None for False.

        Args:
            value: False, True or None (the usual bounds), the most, or some of ``min``, ``start`` and ``max``; fields
                that are not known here (the peer has more) are passed over. A start that is not said is 20, or the
                nearest number in bounds.

        Raises:
            UsageError: for numbers that are no bounds.
        """
        if value is False:
            return None
        usual = cls()
        if value is True or value is None:
            return usual
        said = value if isinstance(value, Mapping) else {"max": value}
        bounds = {name: said.get(name) for name in ("min", "start", "max")}
        if not all(bound is None or type(bound) is int for bound in bounds.values()):
            raise UsageError(f"--adaptive-connections is true, false, a number or min, start and max, not {value!r}")
        low, start, most = bounds["min"], bounds["start"], bounds["max"]
        low = usual.min if low is None else low
        most = max(usual.max, low, start or 0) if most is None else most
        return cls(low, max(low, min(usual.start, most)) if start is None else start, most)


@dataclass(frozen=True, slots=True)
class LimitChange:
    """A change of the limit: from what to what, and why.

    Attributes:
        old: the limit before.
        new: the limit after.
        reason: what moved it.
        more: it goes on with the change before: another slot that the same round opened, or another cut of one episode.
    """

    old: int
    new: int
    reason: Reason
    more: bool = False


@dataclass(frozen=True, slots=True)
class AdaptiveState:
    """What a controller knows at this moment, for a screen.

    Attributes:
        limit: how many may be in flight.
        in_flight: how many are.
        phase: ``slow_start`` until the first refusal, then ``steady``.
        refused_at: the level that was refused last and was not passed since, or None.
        latency: average seconds of a successful request, or None before the first.
        round: the share of the clean round (or rounds) that must pass before the limit grows, 0 to 1.
        refusals: all refusals so far.
        hold: seconds for which nothing should be sent.
    """

    limit: int
    in_flight: int
    phase: Literal["slow_start", "steady"]
    refused_at: int | None
    latency: float | None
    round: float
    refusals: int
    hold: float

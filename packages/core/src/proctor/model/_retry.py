"""The one retry budget: how often, how long between, and when to give up."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

__all__ = ["DEFAULT_ATTEMPT_TIMEOUT", "DEFAULT_MAX_RETRIES", "AttemptTimeout", "GenerateTimeout", "Pacing", "backoff"]

DEFAULT_MAX_RETRIES = 20
DEFAULT_ATTEMPT_TIMEOUT = 600.0
FIRST_DELAY = 1.0
LONGEST_DELAY = 60.0
LONGEST_HINT = 300.0


class AttemptTimeout(TimeoutError):
    """One request got no complete answer within ``attempt_timeout``; the next attempt may."""


class GenerateTimeout(TimeoutError):
    """All attempts of one generate call together took longer than ``timeout``."""


@dataclass(frozen=True, slots=True)
class Pacing:
    """Where time and chance come from, so that tests can give their own.

    Attributes:
        now: seconds of a clock that never goes back.
        sleep: waits so many seconds.
        random: a number in [0, 1).
    """

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    random: Callable[[], float] = random.random


def backoff(retry: int, hint: float | None, chance: float) -> float:
    """Seconds to wait before retry number ``retry`` (from 1): exponential with full jitter, or the provider's hint.

    The ceiling doubles from 1 s up to 60 s and the wait is uniform below it ("full jitter", Brooker 2015, "Exponential
    Backoff And Jitter"). A longer hint wins, up to 300 s.
    """
    ceiling = min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(retry - 1, 30))
    delay = chance * ceiling
    return delay if hint is None else max(delay, min(hint, LONGEST_HINT))

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


# Here and not beside the mock itself: a record names its arguments, and must not import pydantic for them.
@dataclass
class MockArgs:
    """The arguments of the mock provider.

    Attributes:
        latency: seconds that every request takes.
        answers: a file of answers: one a line, or JSON: an array (answers or model outputs, used in turn, then again
            from the first), or an object from the text of the last user message to its answer (``*`` for any other).
        failures: how many requests fail before the first one succeeds.
        failure_every: every n-th request fails (0: none does).
        failure: what kind of failure that is.
        retry_after: seconds that a failure asks to wait.
        custom_outputs: for Python code: outputs used once, in turn, or a function of (input, tools, tool_choice,
            config).

    Raises:
        ValueError: for a number below 0.

    Example:
        >>> from proctor.contracts import MockArgs
        >>> MockArgs(latency=0.1, failure_every=10).failure
        'transient'
    """

    latency: float = 0.0
    answers: str | None = None
    failures: int = 0
    failure_every: int = 0
    failure: Literal["rate_limit", "transient", "permanent"] = "transient"
    retry_after: float | None = None
    custom_outputs: Any = None

    def __post_init__(self) -> None:
        for name in ("latency", "failures", "failure_every", "retry_after"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise ValueError(f"{name} is {value}: give 0 or more")

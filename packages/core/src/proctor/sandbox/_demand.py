"""How many sandboxes will be asked for: what a driver that prepares some has to know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["demand", "expecting", "samples_to_come"]

_to_come: ContextVar[Callable[[], int | None] | None] = ContextVar("proctor_samples_to_come", default=None)


@contextmanager
def expecting(to_come: Callable[[], int | None]) -> Iterator[None]:
    """Let the code inside know how many samples are to come."""
    token = _to_come.set(to_come)
    try:
        yield
    finally:
        _to_come.reset(token)


def samples_to_come() -> int | None:
    """How many samples of the task will want what ``sample_init``, in which this is asked, makes for one of them.

    A driver that prepares sandboxes before they are asked for learns from it when to stop. Of a configuration that one
    sample has for itself, the answer is 0. It may be more than will come: some samples end before they have a sandbox.

    Returns:
        The number, without the sample at hand; ``None`` when it is not known: the dataset does not know its length,
        or there is no run.
    """
    return demand()()


def demand() -> Callable[[], int | None]:
    """``samples_to_come`` for later: a driver that goes on preparing sandboxes asks what is returned, wherever it is.

    Returns:
        A function that says at any time what ``samples_to_come`` would say here by then. It holds nothing of the
        sample at hand.
    """
    return _to_come.get() or _unknown


def _unknown() -> None:
    return None

"""Limits of a part of a sample: what holds for the code inside a ``with`` block."""

from __future__ import annotations

import builtins
import math
from contextvars import ContextVar
from types import TracebackType
from typing import ClassVar

from proctor.limits._errors import LimitExceededError, limit_in
from proctor.schema import ModelUsage

__all__ = ["Limit", "begin_scopes", "scopes"]


class Limit:
    """A limit that holds for the code inside ``with limit:``, and for the tasks that it starts.

    Limits nest: what is used inside counts for all around it. Of several that a call went over at once, the outermost
    is raised, since none inside it can go on. An object is good for one block; ``copy()`` makes a fresh one.

    Args:
        limit: what may be used; None only counts.

    Raises:
        ValueError: for a negative number.
    """

    type: ClassVar[str] = ""

    def __init__(self, limit: float | None) -> None:
        self._limit = _checked(self.type, limit)
        self._used: float = 0
        self._entered = False
        self.active = False
        """Whether the code runs that it holds for."""

    @property
    def limit(self) -> float | None:
        """What may be used; it may be changed while it holds."""
        return self._limit

    @limit.setter
    def limit(self, limit: float | None) -> None:
        self._limit = _checked(self.type, limit)
        self._limit_changed()

    def _limit_changed(self) -> None:
        pass

    @property
    def usage(self) -> float:
        """What was used inside so far."""
        return self._used

    @property
    def remaining(self) -> float | None:
        """What is left, never less than 0; None without a limit."""
        limit = self._limit
        return None if limit is None else max(0, limit - self.usage)

    def copy(self) -> Limit:
        """A limit of the same kind and size that nothing was used of."""
        return type(self)(self._limit)

    def add(self, usage: ModelUsage) -> None:
        """Count what a call of a model used."""

    def turn(self) -> None:
        """Count a call of a model."""

    def check(self, *, reached: bool) -> None:
        """Raise ``LimitExceededError`` if more was used than there is, or as much: ``reached``."""

    def exceeded(self, *, reached: bool = False) -> LimitExceededError:
        """The error that says so."""
        return LimitExceededError(self.type, value=self.usage, limit=self._limit or 0, reached=reached, source=self)

    def __enter__(self) -> Limit:
        if self._entered:
            raise RuntimeError(
                f"this {self.type} limit was used before: a limit is for one `with` block, make a new one (or .copy())"
            )
        self._entered = self.active = True
        self._around = _scopes.get()
        _scopes.set((*self._around, self))
        return self

    def __exit__(
        self, kind: builtins.type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        self.active = False
        _scopes.set(self._around)
        found = limit_in(error)
        if isinstance(error, BaseExceptionGroup) and found is not None and found.source is self:
            raise found from None  # a task group inside has wrapped it
        return None

    def __repr__(self) -> str:
        return f"{self.type}_limit({self._limit})"


def _checked(type: str, limit: float | None) -> float | None:
    if limit is not None and (isinstance(limit, bool) or not limit >= 0 or limit == math.inf):
        raise ValueError(f"a {type} limit is a number from 0 on, or None, not {limit!r}")
    return limit


_scopes: ContextVar[tuple[Limit, ...]] = ContextVar("proctor_limit_scopes", default=())


def scopes() -> tuple[Limit, ...]:
    """The limits around the code that asks, the outermost first; those of the whole sample are not among them."""
    return _scopes.get()


def begin_scopes() -> None:
    """Be inside none from here on."""
    _scopes.set(())

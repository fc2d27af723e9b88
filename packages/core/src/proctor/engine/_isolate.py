"""Await a coroutine in a context of its own, without a task of its own."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from contextvars import copy_context
from typing import Any, Generic, TypeVar

__all__ = ["Isolated"]

T = TypeVar("T")


class Isolated(Generic[T]):
    """``await Isolated(coroutine)``: context variables that the coroutine sets are its own and end with it.

    A task would give the same at the price of two more trips through the event loop for each sample, which under load
    is what keeps connections idle. ``suspended`` tells afterwards whether the coroutine ever waited for anything.
    """

    __slots__ = ("_coroutine", "suspended")

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self.suspended = False

    def __await__(self) -> Generator[Any, Any, T]:
        run = copy_context().run
        coroutine = self._coroutine
        try:
            wanted = run(coroutine.send, None)
            self.suspended = True
            while True:
                try:
                    value = yield wanted
                except GeneratorExit:
                    coroutine.close()
                    raise
                except BaseException as error:
                    wanted = run(coroutine.throw, error)
                else:
                    wanted = run(coroutine.send, value)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # what the coroutine returned

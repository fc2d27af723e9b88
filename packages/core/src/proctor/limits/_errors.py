"""What a limit that ran out raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor.limits._scope import Limit

__all__ = ["LimitExceededError", "limit_in"]


class LimitExceededError(Exception):
    """A limit ended the code that it held for, in an orderly way; that of a sample is scored with what it has.

    Args:
        type: message, token, turn, time, working, cost, operator or custom.
        value: what was used; seconds, dollars or a count.
        limit: what was allowed.
        message: in place of a sentence made of these.
        reached: all was used, and nothing is left for what was asked; otherwise more was used than there was.
        source: the ``Limit`` whose ``with`` block ends; None for a limit of the whole sample.
    """

    def __init__(
        self,
        type: str,
        *,
        value: float = 0,
        limit: float = 0,
        message: str | None = None,
        reached: bool = False,
        source: Limit | None = None,
    ) -> None:
        self.type = type
        self.value = value
        self.limit = limit
        what = "reached" if reached else "exceeded"
        self.message = message or f"{type} limit {what}: {value:g} of {limit:g}{', none is left' if reached else ''}"
        self.source = source
        super().__init__(self.message)

    @property
    def of_part(self) -> bool:
        """Whether it was the limit of a block that has been left, so that the code around it can go on."""
        return self.source is not None and not self.source.active


def limit_in(error: BaseException | None) -> LimitExceededError | None:
    """The limit that ``error`` is, or that all errors of a task group are; None when it is something else, too."""
    if isinstance(error, LimitExceededError):
        return error
    if isinstance(error, BaseExceptionGroup):
        found = [limit_in(each) for each in error.exceptions]
        return found[0] if all(found) else None
    return None

"""The target of a sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

__all__ = ["Target"]


class Target(Sequence[str]):
    """The ideal answer, or several, as a sequence of strings.

    Args:
        target: one answer or a list of them.
    """

    __slots__ = ("target",)

    def __init__(self, target: str | Sequence[str] = "") -> None:
        self.target: list[str] = [target] if isinstance(target, str) else list(target)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self.target[index]

    def __len__(self) -> int:
        return len(self.target)

    def __iter__(self) -> Iterator[str]:
        return iter(self.target)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and other.target == self.target

    def __hash__(self) -> int:
        return hash(tuple(self.target))

    def __repr__(self) -> str:
        return f"Target({self.target!r})"

    @property
    def text(self) -> str:
        """All answers, joined without a separator."""
        return "".join(self.target)

"""Shuffling the choices of a sample together with its target."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.contracts import UsageError
from proctor.schema import Sample

_LETTERS = 26


def _letter(index: int) -> str:
    return chr(ord("A") + index) if index < _LETTERS else str(index - _LETTERS + 1)


def _index(name: str) -> int | None:
    if len(name) == 1 and "A" <= name.upper() <= "Z":
        return ord(name.upper()) - ord("A")
    if name.isdecimal() and int(name) > 0:
        return _LETTERS + int(name) - 1
    return None


def permute_choices(sample: Sample, order: Sequence[int], where: str) -> None:
    """Reorder ``sample.choices`` in place: the choice now at ``i`` was at ``order[i]``. The target's letters follow.

    Raises:
        UsageError: if a target names none of the choices; ``where`` says which sample it is.
    """
    choices = sample.choices or []
    moved = {old: new for new, old in enumerate(order)}

    def follow(name: str) -> str:
        index = _index(name)
        if index is None or index not in moved:
            raise UsageError(
                f"{where}: the choices can't be shuffled, since the target {name!r} names none of them. A target must "
                f"be a letter from A to {_letter(len(choices) - 1)} (or a list of letters): change the target, or "
                f"leave shuffle_choices out."
            )
        return _letter(moved[index])

    target = sample.target
    new_target = follow(target) if isinstance(target, str) else [follow(name) for name in target]
    sample.choices = [choices[old] for old in order]
    sample.target = new_target

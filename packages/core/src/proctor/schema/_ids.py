"""Identifiers: 22 characters of base57, the form that logs of this field use."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

__all__ = ["quick_id", "short_uuid"]

_ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def short_uuid() -> str:
    """A random identifier of 22 characters without look-alikes (128 bits of randomness)."""
    number = int.from_bytes(os.urandom(16), "big")
    digits = []
    for _ in range(22):
        number, digit = divmod(number, 57)
        digits.append(_ALPHABET[digit])
    return "".join(digits)


_DIGITS = 8


def _fresh_ids() -> Iterator[str]:
    """A random prefix with one number after the other, in base57: enough of them for 70 years of the fastest run."""
    return map("".join, itertools.product([short_uuid()[:-_DIGITS]], *[_ALPHABET] * _DIGITS))


_ids = _fresh_ids()


def _begin_anew() -> None:
    global _ids
    _ids = _fresh_ids()


if hasattr(os, "register_at_fork"):  # a forked worker must not repeat its parent's ids
    os.register_at_fork(after_in_child=_begin_anew)


def quick_id() -> str:
    """An identifier of 22 characters, unique across processes: a random prefix and a counter, far cheaper."""
    return next(_ids)  # made and counted in C: formatting a number would cost three times as much

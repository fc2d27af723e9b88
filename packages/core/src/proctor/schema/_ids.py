"""Identifiers: 22 characters of base57, the form that logs of this field use."""

from __future__ import annotations

import os

__all__ = ["short_uuid"]

_ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def short_uuid() -> str:
    """A random identifier of 22 characters without look-alikes (128 bits of randomness)."""
    number = int.from_bytes(os.urandom(16), "big")
    digits = []
    for _ in range(22):
        number, digit = divmod(number, 57)
        digits.append(_ALPHABET[digit])
    return "".join(digits)

"""Amounts as Kubernetes writes them, and what a pod asks for."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["quantity", "requested", "spelled"]

_AMOUNT = re.compile(r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][0-9]+)?)(?P<unit>[A-Za-z]*)")
_UNITS = {
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "": 1.0,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
}


def quantity(text: Any) -> float:
    """An amount such as ``500m``, ``2`` or ``1.5Gi``.

    Raises:
        ValueError: if it is none.
    """
    found = _AMOUNT.fullmatch(str(text))
    if found is None or found["unit"] not in _UNITS:
        raise ValueError(f"quantities must match the regular expression: {text!r}")
    return float(found["number"]) * _UNITS[found["unit"]]


def spelled(amount: float) -> str:
    """An amount as text: whole, or in thousandths."""
    return str(int(amount)) if amount == int(amount) else f"{round(amount * 1000)}m"


def requested(pod: dict[str, Any], side: str, resource: str) -> float | None:
    """What all containers of a pod ask for (``side``: ``requests`` or ``limits``); None if one says nothing."""
    total = 0.0
    for container in pod["spec"]["containers"]:
        resources = container.get("resources") or {}
        given = (resources.get(side) or {}).get(resource)
        if given is None and side == "requests":
            given = (resources.get("limits") or {}).get(resource)
        if given is None:
            return None
        total += quantity(given)
    return total

"""Whose a pod is: the labels that are searched for, and the annotations that say it in full."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from proctor.contracts import SandboxOwner

__all__ = ["DRIVER", "MANAGED", "NETWORK", "label_value", "metadata_of", "owner_of", "selector"]

MANAGED = ("app.kubernetes.io/managed-by", "proctor")
DRIVER = "proctor.driver"
"""The label of everything that one driver made: it watches its own pods."""
NETWORK = "proctor.network"
"""The label by which a network policy finds its pods."""

_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def label_value(text: str) -> str:
    """``text`` as a label may have it: as it is if it may be one, else shortened, with a digest that tells it apart."""
    if _VALUE.fullmatch(text):
        return text
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    kept = re.sub(r"[^A-Za-z0-9_.-]+", "-", text)[:40].strip("-_.")
    return f"{kept}-{digest}" if kept else digest


def metadata_of(owner: SandboxOwner, driver: str) -> dict[str, dict[str, str]]:
    """Labels and annotations of what ``driver`` makes for ``owner``.

    Labels are short and of few characters, so they only find and show; annotations take any text, and are read back.
    """
    told = owner.labels()
    return {
        "labels": {MANAGED[0]: MANAGED[1], DRIVER: driver, **{name: label_value(text) for name, text in told.items()}},
        "annotations": {name: text.encode("utf-8", "replace").decode() for name, text in told.items()},
    }


def owner_of(manifest: Mapping[str, Any]) -> SandboxOwner | None:
    """Whose an object is; ``None`` when it does not say."""
    about = manifest.get("metadata") or {}
    return SandboxOwner.from_labels({**(about.get("labels") or {}), **(about.get("annotations") or {})})


def selector(driver: str | None = None) -> str:
    """A label selector: what Proctor made, or what ``driver`` did."""
    return "=".join(MANAGED) if driver is None else f"{DRIVER}={driver}"

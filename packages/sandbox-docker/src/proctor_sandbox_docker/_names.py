"""What containers are called, and which sample one is for whose labels were written before anybody knew."""

from __future__ import annotations

import re
import secrets
from dataclasses import replace

from proctor.contracts import SandboxOwner

__all__ = ["container_name", "given_name", "given_owner"]

_PLAIN = re.compile(r"[A-Za-z0-9-]")
_ESCAPE = re.compile(r"_([0-9a-f]{2})")
_LONGEST = 200  # characters that a sample's id may have in a name


def container_name(owner: SandboxOwner, service: str = "default") -> str:
    """A name that says what the container is for, and that no other has."""
    epoch = str(owner.epoch) if owner.epoch > 1 else ""
    words = [owner.task, owner.sample, epoch, "" if service == "default" else service]
    return "-".join(["proctor", *filter(None, map(_slug, words)), secrets.token_hex(4)])


def given_name(owner: SandboxOwner) -> str:
    """A name for a container that was made before its sample was known, from which that can be read.

    Labels can't be changed, names can.
    """
    task = "-".join(filter(None, ["proctor", _slug(owner.task)]))
    return f"{task}.{_escaped(owner.sample)}.{owner.epoch}.{secrets.token_hex(4)}"


def given_owner(name: str, owner: SandboxOwner) -> SandboxOwner | None:
    """Whose a container with labels of ``owner`` is by its name; ``None`` if it was not given to a sample yet."""
    parts = name.split(".")
    if len(parts) != 4 or not parts[1] or not parts[2].isdecimal():
        return None
    return replace(owner, sample=_read(parts[1]), epoch=int(parts[2]))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:24].strip("-")


def _escaped(text: str) -> str:
    """``text`` in the characters that names may have; one that is very long is cut."""
    found = ""
    for char in text:
        plain = char if _PLAIN.fullmatch(char) else "".join(f"_{byte:02x}" for byte in char.encode(errors="replace"))
        if len(found) + len(plain) > _LONGEST:
            break
        found += plain
    return found


def _read(escaped: str) -> str:
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), escaped)
    return plain.encode("latin-1", "replace").decode("utf-8", "replace")

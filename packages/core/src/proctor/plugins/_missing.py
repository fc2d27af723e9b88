"""What to install when a plugin is there and what it needs is not: read from its own requirements, never guessed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from proctor.contracts import PrerequisiteError
from proctor.plugins._faults import said
from proctor.plugins._kinds import Kind
from proctor.plugins._scan import Source, normalized

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


@contextmanager
def complete(kind: Kind, name: str, module: str, source: Source) -> Iterator[None]:
    """Turn a failed import inside the block, where a component is made, into an error that says what to install.

    Raises:
        PrerequisiteError: naming the package that is missing and the command that adds it.
    """
    try:
        yield
    except ImportError as error:
        what = what_is_missing(error, module, source)
        raise PrerequisiteError(f"The {kind.noun} {name!r} of {source.label} {what}") from error


def what_is_missing(error: ImportError, module: str, source: Source) -> str:
    """The rest of a sentence about a plugin whose ``module`` is known: what it needs, and the command that adds it."""
    missing = error.name or ""
    package = missing.partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or not missing:
        return f"can't import what it needs, {said(error)}.{_reinstall(source)}"
    if package == module.partition(".")[0]:
        return f"lacks a part of itself, the module {missing!r}.{_reinstall(source)}"
    return f"needs the Python package {missing!r}, which is not installed: `{_command(missing, source)}`."


def _reinstall(source: Source) -> str:
    return f" Reinstall it: `pip install --force-reinstall {source.name}`." if source.packaged else ""


def _command(missing: str, source: Source) -> str:
    found = _provider(missing, source)
    if found is None:
        # The requirements of what is installed already are looked at anew, and added where they are missing.
        return f"pip install --upgrade {source.name}" if source.packaged else f"pip install {missing.partition('.')[0]}"
    extra = _EXTRA.search(str(found.marker or ""))
    return f"pip install '{source.name}[{extra[1]}]'" if extra else f"pip install '{found.name}{found.specifier}'"


def _provider(missing: str, source: Source) -> Requirement | None:
    """The requirement of ``source`` that brings the module: by its name, then by the first part of it."""
    from packaging.requirements import InvalidRequirement, Requirement

    whole, first = normalized(missing), normalized(missing.partition(".")[0])
    parts: list[Requirement] = []
    for line in source.requires:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        name = normalized(requirement.name)
        if name in (whole, first):
            return requirement
        if name.startswith(f"{first}-") or name == f"py{first}" or name == f"python-{first}":
            parts.append(requirement)
    return parts[0] if parts else None

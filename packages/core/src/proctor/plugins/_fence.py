"""Stage 2: refuse, before its code runs, what was made for another version of the core."""

from __future__ import annotations

import re

from proctor.plugins._faults import Code, Fault
from proctor.plugins._scan import CORE, Source

_ON_CORE = re.compile(r"\s*proctor[-_.]+core\b(?![-_.]*[A-Za-z0-9])", re.IGNORECASE)


def core_requirements(source: Source) -> list[str]:
    """What ``source`` requires of the core, as its metadata spell it."""
    return [line for line in source.requires if _ON_CORE.match(line)]


def refusal(source: Source, core_version: str) -> Fault | None:
    """The fault of a distribution that the running core does not satisfy, or ``None``."""
    lines = core_requirements(source)
    if not lines or source.name == CORE:
        return None
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.version import Version

    # A development version of the core (0.2.0.dev3) counts as what it will become.
    version = Version(core_version).base_version
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            message = f"{source.label} requires {line!r}, which is no valid requirement, so it is not loaded. "
            return Fault(Code.BAD_METADATA, message + "Reinstall it, or report it to its authors.", source.name)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            message = (
                f"{source.label} needs {CORE}{requirement.specifier}, and this is {CORE} {core_version}: it is not "
                f"loaded. Install versions that fit: `pip install --upgrade {CORE} {source.name}`."
            )
            return Fault(Code.CORE_VERSION, message, source.name)
    return None

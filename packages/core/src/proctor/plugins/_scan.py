"""Stage 1: what the environment offers, read from the metadata of installed distributions; nothing is imported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from proctor.plugins._faults import Code, Fault
from proctor.plugins._kinds import KINDS, suggestion

CORE = "proctor-core"
_GROUPS = {kind.group: kind for kind in KINDS.values()}
# A name stands in `provider/model`, `name:key=value`, `name,name` and `DISTRIBUTION:NAME`.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_MODULE = re.compile(r"(?P<module>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)\s*(\[[^\]]*\])?\s*\Z")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a plugin comes from.

    Args:
        name: the distribution's name, or what was given to ``--plugin``.
        version: the distribution's version; for a file a digest of its text.
        requires: the requirements in the distribution's metadata.
        location: the folder of the metadata, or the file.
        packaged: whether it is an installed distribution.
    """

    name: str
    version: str
    requires: tuple[str, ...] = ()
    location: str = ""
    packaged: bool = True

    @property
    def label(self) -> str:
        """How a sentence names it."""
        return f"{self.name} {self.version}" if self.packaged else f"--plugin {self.name}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One component that ``source`` declares: ``module`` implements the hook of ``kind`` and returns its record."""

    kind: str
    name: str
    module: str
    source: Source


@dataclass(frozen=True, slots=True)
class Scan:
    """All entries of the environment, and what was wrong with the metadata."""

    entries: tuple[Entry, ...] = ()
    faults: tuple[Fault, ...] = ()
    sources: tuple[Source, ...] = ()


def normalized(name: str) -> str:
    """The name under which two spellings of a distribution are one (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def scan(distributions: Iterable[metadata.Distribution] | None = None) -> Scan:
    """Read every distribution once; the first of a name on ``sys.path`` is the one that Python would import."""
    entries: list[Entry] = []
    faults: list[Fault] = []
    sources: list[Source] = []
    kept: dict[str, str] = {}
    seen: set[str] = set()
    for distribution in metadata.distributions() if distributions is None else distributions:
        location = _location(distribution)
        if location in seen:  # the same folder by another road: a lib64 link, a path listed twice
            continue
        seen.add(location)
        try:
            # Parsing metadata costs 0.3 ms a distribution and few are ours, so the folder's name has to do.
            name = _directory_name(location) or normalized(distribution.metadata["Name"])
            first = kept.setdefault(name, location)
            if "proctor." not in (distribution.read_text("entry_points.txt") or ""):
                continue
            source = _source(distribution, location)
            if first != location:
                faults.append(_shadowed(source, first))
                continue
            before = len(faults)
            found = list(_entries(distribution, source, faults))
        except Exception as error:  # metadata is other people's input, and one bad file must not hide the rest
            faults.append(_unreadable(location, error))
            continue
        if found or len(faults) > before:
            sources.append(source)
            entries.extend(found)
    return Scan(tuple(entries), tuple(faults), tuple(sources))


def _location(distribution: metadata.Distribution) -> str:
    # No public attribute says where the metadata lies; without one (a foreign finder) the object itself is the place.
    path = getattr(distribution, "_path", None)
    return str(Path(path).resolve()) if isinstance(path, Path) else f"{type(distribution).__name__}@{id(distribution)}"


def _directory_name(location: str) -> str:
    name = Path(location).name
    stem, _, suffix = name.rpartition(".")
    return normalized(stem.partition("-")[0]) if suffix in {"dist-info", "egg-info"} else ""


def _source(distribution: metadata.Distribution, location: str) -> Source:
    name, version = distribution.metadata["Name"], distribution.metadata["Version"]
    if not name or not version:
        raise ValueError("its METADATA has no Name or no Version")
    return Source(name, version, tuple(distribution.requires or ()), location)


def _entries(distribution: metadata.Distribution, source: Source, faults: list[Fault]) -> Iterator[Entry]:
    for point in distribution.entry_points:
        if not point.group.startswith("proctor."):
            continue
        kind = _GROUPS.get(point.group)
        if kind is None:
            hint = suggestion(point.group, list(_GROUPS))
            message = f"{source.label} has entry points in a group that nothing reads: {point.group!r}.{hint}"
            faults.append(Fault(Code.UNKNOWN_GROUP, message, source.name, name=point.name))
            continue
        match = _MODULE.match(point.value)
        if NAME.fullmatch(point.name) is None:
            message = (
                f"{source.label} declares a {kind.noun} called {point.name!r}. A name has letters, digits and any of "
                "'._+-'."
            )
            faults.append(Fault(Code.BAD_ENTRY, message, source.name, kind.name, point.name))
            continue
        if match is None:
            message = (
                f"{source.label} declares the {kind.noun} {point.name!r} as {point.value!r}. "
                "Name the module that implements the hook, such as 'acme_provider.hooks'."
            )
            faults.append(Fault(Code.BAD_ENTRY, message, source.name, kind.name, point.name))
            continue
        yield Entry(kind.name, point.name, match["module"], source)


def _shadowed(source: Source, first: str) -> Fault:
    message = (
        f"{source.name} is installed twice: {first} comes first on sys.path and is used, {source.location} is not. "
        "Uninstall one."
    )
    return Fault(Code.SHADOWED, message, source.name)


def _unreadable(location: str, error: Exception) -> Fault:
    message = f"The metadata in {location} can't be read ({error}). Reinstall the distribution."
    return Fault(Code.BAD_METADATA, message, Path(location).name)

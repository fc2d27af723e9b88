"""Which entry a name stands for: what is switched off, refused or offered twice. Nothing is imported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from proctor.plugins import _messages as messages
from proctor.plugins._faults import Code, Fault
from proctor.plugins._fence import refusal
from proctor.plugins._kinds import KINDS, Kind
from proctor.plugins._scan import CORE, Entry, Scan, Source, normalized

Switch: TypeAlias = tuple[str, str]  # a distribution, and one of its names or ""


def switch(item: str) -> Switch:
    """What ``DISTRIBUTION`` or ``DISTRIBUTION:NAME`` switches off."""
    distribution, _, name = item.strip().partition(":")
    return normalized(distribution), name


class Catalog:
    """The entries of one scan and of ``--plugin``, less what is switched off.

    Args:
        scan: what the environment offers.
        extra: what the modules given with ``--plugin`` offer.
        disabled: switched off.
        core_version: what the version fence compares with.
    """

    def __init__(self, scan: Scan, extra: Sequence[Entry], disabled: Iterable[Switch], core_version: str) -> None:
        self.scan = scan
        self._disabled = frozenset(disabled)
        self._core_version = core_version
        self._fences: dict[str, Fault | None] = {}
        self._offers: dict[tuple[str, str], list[Entry]] = {}
        for entry in [*scan.entries, *extra]:
            offers = self._offers.setdefault((entry.kind, entry.name), [])
            if not any(self._same(entry, other) for other in offers):
                offers.append(entry)

    def _same(self, entry: Entry, other: Entry) -> bool:
        if entry.source.packaged:
            return entry == other
        # A module given with --plugin that is also installed is one thing, unless the installed one is out.
        return entry.module == other.module and self.usable(other)

    def entries(self, kind: Kind, name: str | None = None) -> list[Entry]:
        """All entries of ``kind`` (called ``name``), usable or not."""
        if name is not None:
            return list(self._offers.get((kind.name, name), ()))
        return [entry for (of, _), offers in self._offers.items() if of == kind.name for entry in offers]

    def declared(self, kind: Kind, module: str) -> set[str]:
        """The names that distributions say ``module`` offers."""
        return {entry.name for entry in self.scan.entries if entry.kind == kind.name and entry.module == module}

    def disabled(self, entry: Entry) -> bool:
        """Whether the entry is switched off."""
        distribution = normalized(entry.source.name)
        return entry.source.packaged and not self._disabled.isdisjoint({(distribution, ""), (distribution, entry.name)})

    def fence(self, source: Source) -> Fault | None:
        """Why the running core may not load ``source``, if so."""
        key = f"{source.location}:{source.name}"
        if key not in self._fences:
            self._fences[key] = refusal(source, self._core_version)
        return self._fences[key]

    def usable(self, entry: Entry) -> bool:
        """Neither switched off nor refused."""
        return not self.disabled(entry) and self.fence(entry.source) is None

    def names(self, kind: Kind) -> list[str]:
        """The names of ``kind`` that are not switched off, sorted."""
        return sorted({entry.name for entry in self.entries(kind) if not self.disabled(entry)})

    def choose(self, kind: Kind, name: str) -> Entry | Fault | None:
        """The one entry that ``name`` stands for, or why there is none; ``None`` if nothing offers it."""
        candidates = [entry for entry in self.entries(kind, name) if not self.disabled(entry)]
        if not candidates:
            return None
        usable = [entry for entry in candidates if self.fence(entry.source) is None]
        if not usable:
            return self.fence(candidates[0].source)
        if name in kind.reserved:
            return messages.reserved(kind, usable[0])
        if len(usable) > 1:
            sources = ", ".join(entry.source.name for entry in usable)
            return Fault(Code.NAME_TAKEN, messages.taken(kind, usable), sources, kind.name, name)
        return usable[0]

    def own(self, kind: Kind, name: str) -> Entry | None:
        """The core's own entry, whoever else offers the name."""
        mine = [entry for entry in self.entries(kind, name) if entry.source.name == CORE and self.usable(entry)]
        return mine[0] if mine else None

    def faults(self) -> list[Fault]:
        """All that is known to be wrong without an import."""
        found = dict.fromkeys(self.scan.faults)
        for kind in KINDS.values():
            for entry in self.entries(kind):
                if not self.disabled(entry) and (refused := self.fence(entry.source)) is not None:
                    found[refused] = None
            # Every startup hook runs, whatever its entry is called.
            for name in self.names(kind) if kind.name != "startup" else ():
                if isinstance(chosen := self.choose(kind, name), Fault):
                    found[chosen] = None
        return list(found)

    def switches(self) -> list[str]:
        """All that can be switched off."""
        distributions = {normalized(source.name) for source in self.scan.sources}
        return sorted(distributions | {f"{normalized(e.source.name)}:{e.name}" for e in self.scan.entries})

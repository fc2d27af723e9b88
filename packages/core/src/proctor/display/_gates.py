"""Gates in use: how many hold each, of how many, and which way its limit went last."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.contracts import GateSnapshot

__all__ = ["GateTrends"]


class GateTrends:
    """Remembers the limits of gates, since one that moves while the run is on says more than its number."""

    def __init__(self) -> None:
        self._limits: dict[str, int | None] = {}
        self._marks: dict[str, str] = {}

    def note(self, gates: Sequence[GateSnapshot]) -> None:
        """Take in the limits as they are now."""
        for gate in gates:
            before = self._limits.get(gate.name, gate.limit)
            if before is not None and gate.limit is not None and before != gate.limit:
                self._marks[gate.name] = "↑" if gate.limit > before else "↓"
            self._limits[gate.name] = gate.limit

    def text(self, gate: GateSnapshot) -> str:
        """``openai 37/40↑ (+3 waiting)``: the limit went up last."""
        limit = "" if gate.limit is None else f"/{gate.limit}{self._marks.get(gate.name, '')}"
        return f"{gate.name} {gate.held}{limit}" + (f" (+{gate.waiting} waiting)" if gate.waiting else "")

"""What goes wrong with requests to the fake Kubernetes, in the order in which it was asked for."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from proctor_testkit._kube_wire import StreamFault

__all__ = ["Fault", "Faults"]


@dataclass(slots=True)
class Fault:
    """One kind of trouble: for whom, how often, and what.

    Attributes:
        pattern: what is found in the kind of a request: ``^exec``, ``^create pods``.
        times: how many requests it befalls; all that follow if None.
        do: answer with a status, reset the connection, never answer, let it pass, do it and lose the answer, or have
            the answer break in its course.
        stream: how an answer breaks.
    """

    pattern: re.Pattern[str]
    times: int | None
    do: Literal["fail", "reset", "hang", "pass", "lose", "stream"]
    status: int = 500
    message: str = ""
    reason: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: StreamFault | None = None


class Faults:
    """Those that are still to come. The first that fits a request is the only one that befalls it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """One more, after those before it."""
        with self._lock:
            self._faults.append(fault)

    def clear(self) -> None:
        """Nothing goes wrong any more."""
        with self._lock:
            self._faults.clear()

    def take(self, kind: str) -> Fault | None:
        """The one that befalls a request of this kind."""
        with self._lock:
            for fault in self._faults:
                if fault.pattern.search(kind):
                    if fault.times is not None:
                        fault.times -= 1
                        if not fault.times:
                            self._faults.remove(fault)
                    return fault
        return None

"""What goes wrong with requests to the fake Kubernetes, in the order in which it was asked for."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from proctor_testkit.kube._wire import StreamFault

__all__ = ["Fault", "RequestFaults"]


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


class RequestFaults:
    """Those that are still to come. The first that fits a request is the only one that befalls it.

    ``on`` is a regular expression that is looked for in the kind of a request (``exec pods``), ``times`` how many of
    them it befalls: all that follow, if None.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []

    def fail(
        self,
        status: int,
        message: str = "made by FakeKubernetes",
        *,
        on: str = "",
        times: int | None = 1,
        reason: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Refuse the next requests of a kind: for a handshake of ``exec``, too."""
        self._fault(on, times, "fail", status=status, message=message, reason=reason, headers=headers or {})

    def schedule(self, *statuses: int, on: str = "") -> None:
        """What befalls the next requests of a kind, one each; 200 is nothing."""
        for status in statuses:
            if status < 400:
                self._fault(on, 1, "pass")
            else:
                self.fail(status, on=on)

    def reset(self, *, on: str = "", times: int | None = 1) -> None:
        """Reset the connection of the next requests of a kind; nothing is done."""
        self._fault(on, times, "reset")

    def stall(self, *, on: str = "", times: int | None = 1) -> None:
        """Take the next requests of a kind and never answer them."""
        self._fault(on, times, "hang")

    def lose_reply(self, *, on: str = "", times: int | None = 1) -> None:
        """Do what the next requests of a kind ask for, and reset the connection instead of the answer."""
        self._fault(on, times, "lose")

    def cut(self, after: int, *, on: str = "^exec", times: int | None = 1, stall: bool = False) -> None:
        """Of the next answers send so many bytes after the head; then reset the connection, or go silent."""
        self._stream(on, times, after=after, stall=stall)

    def half_frame(self, *, on: str = "^exec", times: int | None = 1) -> None:
        """Break off in the middle of the first frame with output (of the first piece of a watch or a log)."""
        self._stream(on, times, half=True)

    def drip(self, seconds: float = 0.001, *, on: str = "^exec", times: int | None = 1) -> None:
        """Send the next answers a few bytes at a time, so many seconds apart."""
        self._stream(on, times, drip=seconds)

    def clear(self) -> None:
        """No request goes wrong any more."""
        with self._lock:
            self._faults.clear()

    def _fault(self, on: str, times: int | None, do: Any, **more: Any) -> None:
        with self._lock:
            self._faults.append(Fault(re.compile(on), times, do, **more))

    def _stream(self, on: str, times: int | None, **more: Any) -> None:
        self._fault(on, times, "stream", stream=StreamFault(**more))

    def _take(self, kind: str) -> Fault | None:
        """The one that befalls a request of this kind, used up by one."""
        with self._lock:
            for fault in self._faults:
                if fault.pattern.search(kind):
                    if fault.times is not None:
                        fault.times -= 1
                        if not fault.times:
                            self._faults.remove(fault)
                    return fault
        return None

"""What is said while an image is pulled or built: how far it is, now and then."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["BuildProgress", "PullProgress", "error_of"]

_log = logging.getLogger("proctor.sandbox")
_EVERY_SECONDS = 10.0
_STEP = re.compile(r"Step (\d+)/(\d+) : (.*)")


def error_of(event: Mapping[str, Any]) -> str | None:
    """What an event of a pull or a build says that went wrong; such a call is answered with 200 nevertheless."""
    # "error" is deprecated since version 1.48 of the API, "errorDetail" is not in all of Podman's events.
    error = (event.get("errorDetail") or {}).get("message") or event.get("error")
    return None if error is None else str(error).strip()


class _Progress:
    def __init__(self, what: str, clock: Callable[[], float]) -> None:
        self._what = what
        self._clock = clock
        self._start = self._said = clock()
        _log.info("%s ...", what)

    def _say(self, text: str) -> None:
        if self._clock() - self._said >= _EVERY_SECONDS:
            self._said = self._clock()
            _log.info("%s: %s", self._what, text)

    def end(self) -> None:
        """Say how long it took."""
        _log.info("%s: done after %.0f s", self._what, self._clock() - self._start)


class PullProgress(_Progress):
    """Of a pull.

    Args:
        image: its name.
        clock: seconds.
    """

    def __init__(self, image: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(f"pulling {image}", clock)
        self._layers: dict[str, tuple[int, int]] = {}

    def see(self, event: Mapping[str, Any]) -> None:
        """Take in what the engine tells."""
        detail = event.get("progressDetail") or {}
        if event.get("status") == "Downloading" and detail.get("total"):
            self._layers[str(event.get("id"))] = (detail.get("current", 0), detail["total"])
        elif event.get("status") in ("Download complete", "Pull complete"):
            layer = str(event.get("id"))
            size = self._layers.get(layer, (0, 0))[1]
            self._layers[layer] = (size, size)
        if (total := sum(size for _, size in self._layers.values())) > 0:
            self._say(f"{100 * sum(here for here, _ in self._layers.values()) // total} %")


class BuildProgress(_Progress):
    """Of a build.

    Args:
        what: is built.
        clock: seconds.
    """

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(f"building {what}", clock)

    def see(self, line: str) -> None:
        """Take in a line of its output."""
        if match := _STEP.match(line):
            self._say(f"step {match[1]} of {match[2]}: {match[3].strip()[:100]}")

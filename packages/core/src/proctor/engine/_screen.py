"""The thread that a display has to itself."""

from __future__ import annotations

import dataclasses
import queue
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

from proctor import plugins
from proctor.contracts import Display, MessageLevel, RunSnapshot, SampleSnapshot
from proctor.display import default_display

__all__ = ["Screen", "component_settings", "make_display"]

_PERIOD = 0.1  # seconds: ten times a second at most
_END_WAIT = 10.0  # seconds that a slow screen has for its last picture


def make_display(name: str | None, backend: str) -> Display:
    """The display that was asked for, else ``rich`` on a terminal and ``plain`` elsewhere.

    The latter also, with a warning, for one that does not run on ``backend`` or is broken: no screen is worth a run.

    Raises:
        UsageError: for a display or a setting that does not exist.
    """
    record, args = component_settings("displays", name) if name else _default()
    if backend not in record.backends:
        instead, args = _default()
        warnings.warn(
            f"the display {record.name!r} runs on {' and '.join(record.backends)} only, and the back-end is {backend}: "
            f"{instead.name!r} shows the run instead",
            stacklevel=2,
        )
        record = instead
    try:
        display: Display = plugins.make("displays", record, args)
    except plugins.BrokenComponent as error:
        instead, args = _default()
        warnings.warn(f"{error} {instead.name!r} shows the run instead.", stacklevel=2)
        display = plugins.make("displays", instead, args)
    return display


def _default() -> tuple[Any, Any]:
    record = plugins.get("displays", default_display(), default=True)
    return record, plugins.build_args(record, {}, flag=f"{record.name}:")


def component_settings(kind: str, spec: str) -> tuple[Any, Any]:
    """The record that ``name[:key=value,...]`` names, and its arguments."""
    name, given = plugins.component_spec(spec)
    record: Any = plugins.get(kind, name)
    return record, plugins.build_args(record, given, flag=f"{name}:")


class Screen:
    """Calls a display on its own thread; a display that raises is turned off with one warning."""

    def __init__(
        self,
        display: Display,
        snapshot: Callable[[], RunSnapshot],
        samples: Callable[[], tuple[SampleSnapshot, ...]] = tuple,
    ) -> None:
        self._display = display
        self._counters = snapshot
        self._samples = samples
        self._wanted = False
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._broken = False
        self._thread = threading.Thread(target=self._run, name="proctor-display", daemon=True)

    def start(self) -> None:
        """Show the plan."""
        self._thread.start()

    def message(self, text: str, level: MessageLevel = "info") -> None:
        """Show a sentence."""
        self._queue.put(lambda: self._display.message(text, level))

    def toggle_samples(self) -> None:
        """Show what the unfinished samples wait for; on a screen that is drawn over, until this is called again."""
        self._wanted = not self._wanted

    def finish(self, exit_code: int) -> None:
        """Show the results and wait until they are shown."""
        self._queue.put(lambda: self._display.finish(self._snapshot(), exit_code))
        self._queue.put(None)
        self._thread.join(_END_WAIT)

    def _run(self) -> None:
        self._show(lambda: self._display.start(self._snapshot()))
        while True:
            try:
                call = self._queue.get(timeout=_PERIOD)
            except queue.Empty:
                self._show(lambda: self._display.update(self._snapshot()))
                continue
            if call is None:
                return
            self._show(call)

    def _snapshot(self) -> RunSnapshot:
        snapshot = self._counters()
        if not self._wanted:
            return snapshot
        self._wanted = self._display.draws_over
        return dataclasses.replace(snapshot, samples=self._samples())

    def _show(self, call: Callable[[], None]) -> None:
        if self._broken:
            return
        try:
            call()
        except (Exception, SystemExit) as error:
            self._broken = True
            name, what = type(self._display).__name__, f"{type(error).__name__}: {error}"
            sys.stderr.write(f"The display {name} is turned off, it raised {what}\n")

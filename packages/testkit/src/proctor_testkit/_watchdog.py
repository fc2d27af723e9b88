"""Ends a run in which a check hangs that its event loop cannot end: it blocks the loop, or shields itself."""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

__all__ = ["limit_of", "open_terminal", "watched"]

GRACE = 30.0
"""Seconds that a check has to end after its time was over, before the whole run is ended."""

_terminal = pytest.StashKey[int]()


def open_terminal(config: pytest.Config) -> None:
    """Keep the way to the terminal while nothing is captured yet."""
    with suppress(OSError, ValueError):  # there is none
        terminal = os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)
        config.stash[_terminal] = terminal
        config.add_cleanup(lambda: os.close(terminal))


def limit_of(item: pytest.Item, seconds: float) -> float | None:
    """Seconds after which a check that may take ``seconds`` hangs; None when a debugger may hold it up.

    Where pytest-timeout has a limit, it has its turn first: what it can end, does not end the run.
    """
    config = item.config
    if config.getoption("usepdb", False) or config.getoption("trace", False):
        return None
    other = config.getoption("timeout", None)
    if other is None and config.pluginmanager.hasplugin("timeout"):
        own = item.get_closest_marker("timeout")
        other = own.args[0] if own is not None and own.args else config.getini("timeout")
    return max(seconds, float(other or 0)) + GRACE


@contextmanager
def watched(item: pytest.Item, check: str, limit: float, before_end: Callable[[], object]) -> Iterator[None]:
    """End the process when the block takes longer than ``limit`` seconds, with the stacks and the name of the check.

    It is a thread, since neither an async time limit nor an exception gets out of a loop that is blocked.
    """

    def end() -> None:
        with suppress(Exception):
            before_end()
        terminal = item.config.stash.get(_terminal, 2)
        faulthandler.dump_traceback(terminal, all_threads=True)
        os.write(terminal, _last_words(item, check, limit).encode(errors="replace"))
        os._exit(pytest.ExitCode.TESTS_FAILED)

    timer = threading.Timer(limit, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _last_words(item: pytest.Item, check: str, limit: float) -> str:
    """What the summary would have said."""
    reporter = item.config.pluginmanager.get_plugin("terminalreporter")
    failed = [report.nodeid for report in reporter.stats.get("failed", ())] if reporter else []
    hangs = (
        f"FAILED {item.nodeid}: the check {check} hangs and cannot be cancelled, so the run ends here, after "
        f"{limit:g} s. Something in it blocks the event loop, or is shielded from cancellation: see the stacks above."
    )
    return "\n".join(["", *(f"FAILED {name}" for name in failed), hangs, ""])

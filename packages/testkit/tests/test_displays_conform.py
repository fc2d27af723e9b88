"""The core's own displays pass the suite that outsiders run."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from proctor.contracts import Display
from proctor.display import RichDisplay
from proctor_testkit import DisplaySuite


class TestNone(DisplaySuite):
    display = "none"
    capabilities = frozenset({"messages"})


class TestPlain(DisplaySuite):
    display = "plain"
    capabilities = frozenset({"messages", "results", "waits"})


class TestRich(DisplaySuite):
    display = "rich"
    capabilities = frozenset({"messages", "results", "waits"})

    @pytest.fixture
    def terminal(self) -> io.StringIO:
        return io.StringIO()

    @pytest.fixture
    def screen(self, terminal: io.StringIO) -> Display:
        return RichDisplay(Console(file=terminal, force_terminal=True, highlight=False))

    @pytest.fixture
    def written(self, terminal: io.StringIO, capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
        return lambda: terminal.getvalue() + "".join(capfd.readouterr())

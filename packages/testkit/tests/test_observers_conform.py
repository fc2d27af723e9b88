"""An observer, as a person would write one, passes the suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proctor import plugins
from proctor_testkit import ObserverSuite

PLUGIN = Path(__file__).parent / "observers_here.py"


class TestNotes(ObserverSuite):
    observer = "notes:prefix="
    capabilities = frozenset({"records"})

    @pytest.fixture(autouse=True)
    def _its_plugin(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setenv("PROCTOR_PLUGINS", str(PLUGIN))
        plugins.configure()
        yield
        monkeypatch.undo()
        plugins.configure()

    @pytest.fixture
    def recorded(self) -> Callable[[], list[str]]:
        kept: list[str] = plugins.get("observers", "notes").factory.kept  # type: ignore[attr-defined]
        kept.clear()
        return lambda: kept

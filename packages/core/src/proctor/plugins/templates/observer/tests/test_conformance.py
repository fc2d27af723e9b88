"""The contract of observers, as the test-kit has it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from proctor_testkit import ObserverSuite


class TestAcme(ObserverSuite):
    observer = "acme"
    capabilities = frozenset({"records"})

    @pytest.fixture
    def spec(self, tmp_path: Path) -> str:
        """Writes into a folder of the test's own; a tracker would be given the address of a fake server."""
        return f"acme:file={tmp_path / 'acme.jsonl'}"

    @pytest.fixture
    def recorded(self, tmp_path: Path) -> Callable[[], Iterable[Any]]:
        """The samples that it has told of."""

        def recorded() -> Iterable[Any]:
            events = [json.loads(line) for line in (tmp_path / "acme.jsonl").read_text().splitlines()]
            return [event["id"] for event in events if event["event"] == "sample_end"]

        return recorded

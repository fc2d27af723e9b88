"""Examples as modules, since they are files that nobody imports."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example() -> Callable[[str], ModuleType]:
    """Load an example by its path below ``examples/``, without the ending."""

    def load(name: str) -> ModuleType:
        label = f"example_{name.replace('/', '_')}"
        spec = importlib.util.spec_from_file_location(label, EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[label] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    """What every run here is told."""
    return {"display": "none", "log_dir": str(tmp_path / "logs")}

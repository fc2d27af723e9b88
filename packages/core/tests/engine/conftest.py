from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor import eval
from proctor.schema import EvalLog


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., list[EvalLog]]:
    def evaluate(tasks: Any, model: Any = "mock/model", **options: Any) -> list[EvalLog]:
        options = {"display": "none", "log_dir": str(tmp_path), "async_backend": request.param, **options}
        return eval(tasks, model=model, **options)

    return evaluate

"""Which async back-end runs here, whatever trio is installed."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from proctor.plugins import running_backend


@pytest.mark.anyio
async def test_in_a_loop_it_is_that_loop_s(anyio_backend: str) -> None:
    assert running_backend() == anyio_backend


def test_outside_of_any_there_is_none() -> None:
    assert running_backend() is None


@pytest.mark.anyio
async def test_a_trio_too_old_for_what_it_is_asked_breaks_nothing(
    monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    """Given trio 0.27, which has no ``in_trio_run`` and is there for something else."""

    def no_token() -> object:
        raise RuntimeError("must be called from async context")

    old = SimpleNamespace(lowlevel=SimpleNamespace(current_trio_token=no_token))
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "trio", old)
        found = running_backend()

    assert found == ("asyncio" if anyio_backend == "asyncio" else None)

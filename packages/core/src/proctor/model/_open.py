"""Which models are open: those of each run, and those that belong to none. A run closes what no other run uses."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from anyio.lowlevel import current_token

from proctor.concurrency import bounded
from proctor.model._model import Model

__all__ = ["close_models", "current_loop", "memory", "note_use", "run_models"]

CLOSE_SECONDS = 5.0
"""Seconds that a model has to close its connections."""

_Key: TypeAlias = tuple[object, ...]


class _Run:
    """The models that one run made or was given, in one event loop."""

    def __init__(self, loop: object) -> None:
        self.loop = loop
        self.made: dict[_Key, Model] = {}
        self.given: dict[int, Model] = {}

    def models(self) -> list[Model]:
        return [*self.made.values(), *self.given.values()]


_made: dict[_Key, Model] = {}
"""What was made outside of any run, by a key that ends with its event loop (None: before there was one)."""
_runs: list[_Run] = []
_current: ContextVar[_Run | None] = ContextVar("proctor_run_models", default=None)


def current_loop() -> object:
    """The running event loop, or None when none runs: a task file may ask for a model while it is loaded."""
    try:
        return current_token()
    except RuntimeError:
        return None


def memory() -> dict[_Key, Model]:
    """Where models are remembered here: with the run, or outside of one with the process."""
    run = _current.get()
    return _made if run is None else run.made


def note_use(model: Model) -> None:
    """Note that the current run uses ``model``, which somebody else made."""
    run = _current.get()
    if run is not None:
        run.given.setdefault(id(model.api), model)


@contextmanager
def run_models() -> Iterator[None]:
    """Let the code inside remember the models it makes as its own: another run in the same loop closes none of them."""
    run = _Run(current_loop())
    token = _current.set(run)
    _runs.append(run)
    try:
        yield
    finally:
        _runs.remove(run)
        _current.reset(token)


async def close_models() -> None:
    """Close the connections that belong to this event loop: of the current run's models, as far as no other run uses
    them, and of those that belong to no run, unless other runs go on in this loop."""
    loop = current_token()
    run = _current.get()
    others = [each for each in _runs if each is not run and each.loop == loop]
    models: list[Model] = []
    if run is not None:
        models += run.models()
        run.made.clear()
        run.given.clear()
    if not others:
        models += [model for key, model in _made.items() if key[-1] is None or key[-1] == loop]
        for key in [key for key in _made if key[-1] == loop]:
            del _made[key]
    used = {id(model.api) for each in others for model in each.models()}
    for model in {id(model.api): model for model in models if id(model.api) not in used}.values():
        try:
            if not await bounded(model.api.aclose, CLOSE_SECONDS):
                logging.getLogger(__name__).warning("the connections of %s did not close in time", model.name)
        except Exception:  # what was evaluated stands, whatever a connection does at its end
            logging.getLogger(__name__).exception("the connections of %s could not be closed", model.name)

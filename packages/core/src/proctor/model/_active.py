"""The model and the roles of the sample that runs here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor.model._model import Model

__all__ = ["active_model", "active_model_roles", "use_models"]

active_model: ContextVar[Model | None] = ContextVar("proctor_active_model", default=None)
"""The model under evaluation, with the merged settings of all levels above the call."""
active_model_roles: ContextVar[Mapping[str, Model]] = ContextVar("proctor_model_roles", default={})  # noqa: B039 - read only
"""The models of the roles that the run was given, by role."""


@contextmanager
def use_models(model: Model | None, roles: Mapping[str, Model] | None = None) -> Iterator[None]:
    """Make ``model`` (and the models of ``roles``) what ``get_model()`` returns in the code inside."""
    token, roles_token = active_model.set(model), active_model_roles.set(dict(roles or {}))
    try:
        yield
    finally:
        active_model.reset(token)
        active_model_roles.reset(roles_token)

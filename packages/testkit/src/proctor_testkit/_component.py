"""A component of a plugin, as its option names it."""

from __future__ import annotations

from typing import Any

from proctor import plugins

__all__ = ["record_and_args"]


def record_and_args(kind: str, spec: str) -> tuple[Any, Any]:
    """The record that ``name[:key=value,...]`` names, and the arguments for its factory."""
    name, given = plugins.component_spec(spec)
    record: Any = plugins.get(kind, name)
    return record, plugins.build_args(record, given, flag=f"{name}:")

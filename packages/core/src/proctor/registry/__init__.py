"""What solvers, scorers, tools, metrics, agents and tasks are called, and with what they were made."""

from proctor.registry._registry import (
    RegistryInfo,
    component,
    create,
    is_registered,
    loggable,
    registered,
    registry_info,
    tag,
)

__all__ = [
    "RegistryInfo",
    "component",
    "create",
    "is_registered",
    "loggable",
    "registered",
    "registry_info",
    "tag",
]

"""What solvers, scorers, tools, metrics, agents and tasks are called, and with what they were made."""

from proctor.registry._loggable import loggable
from proctor.registry._registry import (
    Kind,
    RegistryInfo,
    component,
    create,
    is_factory,
    is_registered,
    registered,
    registry_info,
    tag,
)

__all__ = [
    "Kind",
    "RegistryInfo",
    "component",
    "create",
    "is_factory",
    "is_registered",
    "loggable",
    "registered",
    "registry_info",
    "tag",
]

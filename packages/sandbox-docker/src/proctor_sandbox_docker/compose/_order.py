"""Which service starts when."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from proctor_sandbox_docker.compose._spec import ServiceSpec, StartCondition

__all__ = ["start_order", "waits_for"]


def waits_for(service: ServiceSpec) -> dict[str, StartCondition]:
    """What has to be there before ``service`` starts: what it depends on, and whose network it shares."""
    found = dict(service.depends_on)
    if service.network_mode is not None and service.network_mode.startswith("service:"):
        found.setdefault(service.network_mode.removeprefix("service:"), "service_started")
    return found


def start_order(services: Iterable[ServiceSpec]) -> list[list[ServiceSpec]]:
    """Services in groups: those of a group may start at once, after all groups before it.

    Raises:
        ValueError: services wait for each other; the message names them.
    """
    by_name = {service.name: service for service in services}
    sorter = TopologicalSorter({name: list(waits_for(service)) for name, service in by_name.items()})
    try:
        sorter.prepare()
    except CycleError as error:
        raise ValueError(f"services wait for each other: {' -> '.join(reversed(error.args[1]))}") from None
    groups = []
    while sorter.is_active():
        ready = sorter.get_ready()
        groups.append([by_name[name] for name in by_name if name in ready])
        sorter.done(*ready)
    return groups

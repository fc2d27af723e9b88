from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Final

from proctor.contracts import UsageError


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of plugin: its entry-point group is ``proctor.<name>``, ``hook`` returns records of the type ``record``.

    Args:
        name: what the kind is called in :func:`proctor.plugins.get` and in its entry-point group.
        hook: the hook specification.
        record: the record's name in :mod:`proctor.contracts`; empty when the hook returns nothing.
        noun: what one of them is called in a sentence.
        makes: the type of what a record's factory makes, with its module; empty when nothing in the core uses it.
        reserved: names that the core keeps for itself.
    """

    name: str
    hook: str
    record: str
    noun: str
    makes: str = ""
    reserved: frozenset[str] = frozenset()

    @property
    def group(self) -> str:
        """The entry-point group."""
        return f"proctor.{self.name}"


_COMMANDS = frozenset(
    {"completion", "eval", "eval-retry", "eval-set", "info", "list", "log", "plugins", "sandbox", "score", "status"}
)

KINDS: Final[dict[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind(
            "model_providers",
            "proctor_model_providers",
            "ModelProvider",
            "model provider",
            "proctor.contracts.ModelAPI",
        ),
        Kind(
            "sandbox_providers",
            "proctor_sandbox_providers",
            "SandboxProvider",
            "sandbox",
            "proctor.contracts.SandboxDriver",
        ),
        Kind("log_stores", "proctor_log_stores", "LogStoreProvider", "log store", "proctor.contracts.LogStore"),
        Kind("displays", "proctor_displays", "DisplayProvider", "display", "proctor.contracts.Display"),
        Kind("observers", "proctor_observers", "ObserverProvider", "observer", "proctor.contracts.Observer"),
        Kind("runners", "proctor_runners", "RunnerProvider", "runner"),
        Kind("partitioners", "proctor_partitioners", "PartitionerProvider", "partitioner"),
        Kind("commands", "proctor_commands", "CommandProvider", "command", "click.Command", _COMMANDS),
        Kind("tasks", "proctor_task_packages", "TaskPackage", "task package"),
        Kind("startup", "proctor_startup", "", "startup hook"),
    )
}


def kind_named(name: str) -> Kind:
    """The kind called ``name``.

    Raises:
        UsageError: if there is none; the message lists all.
    """
    try:
        return KINDS[name]
    except KeyError:
        raise UsageError(f"There is no kind of plugin {name!r}.{suggestion(name, list(KINDS))}") from None


def suggestion(name: str, known: list[str]) -> str:
    """A sentence, with a leading space, that names the close match of ``name`` or else everything ``known``."""
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f" Did you mean {close[0]!r}?"
    return f" Known: {', '.join(sorted(known))}." if known else ""

"""What the shelf offers: a place for logs, and a ledger of runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proctor.contracts import LogStoreProvider, ObserverProvider
from proctor.hookspecs import hookimpl


@dataclass
class LedgerArgs:
    """The arguments of the ledger.

    Attributes:
        file: where it is written, one JSON object a line.
        samples: whether each sample is read back from the log.
    """

    file: str = "ledger.jsonl"
    samples: bool = False


def _store() -> Any:
    from acme_shelf._store import Shelf

    return Shelf()


def _observer(args: LedgerArgs) -> Any:
    from acme_shelf._observer import Ledger

    return Ledger(args)


@hookimpl
def proctor_log_stores() -> list[LogStoreProvider]:
    return [LogStoreProvider(scheme="shelf", factory=_store, summary="a folder for each log")]


@hookimpl
def proctor_observers() -> list[ObserverProvider]:
    return [ObserverProvider(name="ledger", factory=_observer, args=LedgerArgs, summary="a line for each event")]

"""What this package offers. Importing it is cheap: the store comes with the first log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.contracts import LogStoreProvider
from proctor.hookspecs import hookimpl

if TYPE_CHECKING:
    from proctor.contracts import LogStore


def _make() -> LogStore:
    from proctor_log_acme._store import AcmeStore

    return AcmeStore()


@hookimpl
def proctor_log_stores() -> Sequence[LogStoreProvider]:
    """One scheme: ``acme://``."""
    return [LogStoreProvider(scheme="acme", factory=_make, summary="Acme's store: acme://FOLDER")]

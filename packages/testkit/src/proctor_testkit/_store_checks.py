"""What all checks of log stores stand on: the fixtures that a subclass gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

import pytest

from proctor.contracts import LogSink, LogStore
from proctor_testkit._suite import Needed, Suite

__all__ = ["Failing", "Lapse", "Opener", "StoreChecks", "Torn"]

Opener = Callable[[], LogStore]
Lapse = Callable[[], object]
Torn = Callable[[LogStore, str, LogSink, bytes, bytes, int], None]
Failing = Callable[[LogStore], AbstractContextManager[object]]

NAME = "folder/2026-01-01T00-00-00-00-00_a-task_0000.eval"


class StoreChecks(Suite):
    """The fixtures; see ``LogStoreSuite``."""

    kind = "log store"
    needed = (
        Needed("store", "a fixture that returns an empty log store"),
        *(
            Needed(name, f"a fixture as LogStoreSuite.{name} describes it", capability=capability)
            for name, capability in (("opener", "processes"), ("torn", "torn"), ("failing", "failing"))
        ),
    )

    @pytest.fixture
    def store(self) -> LogStore:
        """An empty store."""
        raise pytest.UsageError(f"{type(self).__name__} needs a fixture `store` that returns an empty log store")

    @pytest.fixture
    def name(self) -> str:
        """The name of a log that is not there yet, as the store takes it."""
        return NAME

    @pytest.fixture
    def folder(self, name: str) -> str:
        """The folder of ``name``."""
        return name.rpartition("/")[0]

    @pytest.fixture
    def opener(self) -> Opener:
        """Gives, in another process, a store of the same logs; something that can be pickled, such as the class."""
        raise self._wanted("opener", "processes")

    @pytest.fixture
    def lapse(self) -> Lapse:
        """Let the time pass after which the store takes a silent holder for dead, by its clock; unless that is none."""
        return lambda: None

    @pytest.fixture
    def torn(self) -> Torn:
        """``torn(store, name, sink, segment, directory, size)``: begin a commit that dies after ``size`` bytes.

        What then is in the store must be what the death of the process (or of the machine) leaves there.
        """
        raise self._wanted("torn", "torn")

    @pytest.fixture
    def failing(self) -> Failing:
        """``failing(store)``: a context manager in which commits run out of space halfway (``ENOSPC``)."""
        raise self._wanted("failing", "failing")

    def _wanted(self, fixture: str, capability: str) -> pytest.UsageError:
        return pytest.UsageError(
            f"{type(self).__name__} declares the capability {capability!r}: it needs a fixture `{fixture}`"
        )

    def written(self, store: LogStore, name: str, commits: Iterable[tuple[bytes, bytes]]) -> None:
        """A log made of ``commits``, and closed."""
        sink = store.create(name)
        for segment, directory in commits:
            sink.commit(segment, directory)
        sink.close()

"""Which checks a faulty component is held to: a ``conftest.py`` beside the files of faulty components.

The one without fault is held to all. Another one to its own, and to those of the same family that it could fail, too;
what takes seconds (commands that must be killed) or moves hundreds of megabytes is left out there. A fault is one on
either back-end, so one of them shows it.
"""

from __future__ import annotations

import pytest

from proctor_testkit import Suite
from proctor_testkit._suite import check_of

EXPENSIVE = {
    "after_timeout",
    "at_once",
    "background",
    "cancel",
    "file_large",
    "file_limit",
    "output_large",
    "output_limit",
    "reap",
    "stdin_large",
    "timeout",
    "timeout_output",
    "timeout_sessions",
    "unblocked",
    "vanish",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if _wanted(item)]


def _wanted(item: pytest.Item) -> bool:
    suite: type[Suite] = item.cls  # type: ignore[attr-defined]  # all of them are methods
    found = check_of(item.function)  # type: ignore[attr-defined]
    assert found is not None
    id, fault = found.id.partition(".")[2], suite.component().partition("__")[0]
    if fault == "faultless":
        return True
    if "[trio" in item.name:
        return False
    return id == fault or (id not in EXPENSIVE and _family(suite, id) is _family(suite, fault))


def _family(suite: type[Suite], id: str) -> type | None:
    """The class that has the check ``id``."""
    for base in suite.__mro__:
        for value in vars(base).values():
            found = check_of(value)
            if found is not None and found.id.partition(".")[2] == id:
                return base
    return None

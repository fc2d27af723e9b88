"""The public API changes only when somebody means it: names, signatures and fields are held by a snapshot."""

from __future__ import annotations

import ast
import difflib
import importlib

import public_api
import pytest

ACCEPT = (
    "The public API of {module} is not what tests/repo/api says.\n\n{diff}\n"
    "A name, a parameter or a field that others may use can be added (at the end, with a default), and is not taken "
    "away or changed before a deprecation. If the change is meant: python docs/generate.py --api, and a line in "
    "CHANGELOG.md for whoever has to do something."
)

SNAPSHOT = public_api.snapshot()


@pytest.mark.parametrize("path", SNAPSHOT, ids=lambda path: path.stem)
def test_the_public_api_is_what_was_accepted(path: public_api.Path) -> None:
    accepted = path.read_text(encoding="utf-8") if path.exists() else ""

    diff = difflib.unified_diff(accepted.splitlines(), SNAPSHOT[path].splitlines(), "accepted", "now", lineterm="")

    assert accepted == SNAPSHOT[path], ACCEPT.format(module=path.stem, diff="\n".join(diff))


def test_no_accepted_module_is_gone() -> None:
    assert sorted(set(public_api.SNAPSHOT.glob("*.txt")) - set(SNAPSHOT)) == [], "python docs/generate.py --api"


@pytest.mark.parametrize("module", public_api.public_modules())
def test_what_is_read_from_the_syntax_is_what_importing_gives(module: str) -> None:
    there = importlib.import_module(module)

    for name in public_api.exported(module):
        home, definitions = public_api.find(module, name)
        value = getattr(there, name)
        if definitions and isinstance(definitions[-1], ast.ClassDef):
            assert isinstance(value, type)
            assert value.__module__ == home
        elif not definitions:
            assert getattr(importlib.import_module(home), name) is value

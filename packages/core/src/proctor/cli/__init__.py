"""The command line: ``proctor COMMAND ...``, one command a file, each imported when it is called."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proctor.cli._eval import parse_eval
    from proctor.cli._main import main
    from proctor.cli._root import root

__all__ = ["main", "parse_eval", "root"]

_HOME = {"main": "_main", "parse_eval": "_eval", "root": "_root"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"proctor.cli.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'proctor.cli' has no attribute {name!r}")

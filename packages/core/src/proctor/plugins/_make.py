"""Making a component: the one place where a record's factory is called, and its faults become sentences."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from proctor.contracts import UsageError
from proctor.plugins._faults import said
from proctor.plugins._kinds import Kind


class BrokenComponent(UsageError):  # it is said of the component, as Fault is of a plugin
    """A plugin's own fault, found in what it made or did not make; the message names the plugin."""


def make(kind: Kind, name: str, label: str, factory: Any, args: Sequence[Any], settings: Mapping[str, Any]) -> Any:
    """What ``factory`` makes of the arguments.

    Args:
        kind: what is made.
        name: what it was asked for by.
        label: whose it is, for the message; empty when that is not known.
        factory: of the record.
        args, settings: what it is called with.

    Raises:
        BrokenComponent: the factory raised, ended the program, or made something else.
        UsageError, ImportError: as the factory raised it.
    """
    said_of = f"The factory of {_named(kind, name, label)}"
    try:
        made = factory(*args, **settings)
    except (UsageError, ImportError):  # said on purpose, or said better by what is to be installed
        raise
    except SystemExit as error:
        raise BrokenComponent(f"{said_of} {_exit(error)}. Report it to its authors.") from error
    except Exception as error:
        raise BrokenComponent(
            f"{said_of} raised {said(error)}. Mend its settings, or report it to its authors."
        ) from error
    if kind.makes:
        module, _, wanted = kind.makes.rpartition(".")
        if not isinstance(made, getattr(importlib.import_module(module), wanted)):
            found = "None" if made is None else f"an object of type {type(made).__name__!r}"
            article = "an" if wanted[0] in "AEIOU" else "a"
            raise BrokenComponent(f"{said_of} returned {found}, not {article} {wanted}. Report it to its authors.")
    return made


@contextmanager
def contained(kind: Kind, name: str, label: str) -> Iterator[None]:
    """Keep what the block calls from ending the program.

    Raises:
        BrokenComponent: in place of ``SystemExit``.
    """
    try:
        yield
    except SystemExit as error:
        named = _named(kind, name, label)
        message = f"{named[0].upper()}{named[1:]} {_exit(error)}. Report it to its authors."
        raise BrokenComponent(message) from error


def _named(kind: Kind, name: str, label: str) -> str:
    return f"the {kind.noun} {name!r}" + (f" ({label})" if label else "")


def _exit(error: SystemExit) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"ended the program (SystemExit {error.code!r}) in {where.name} ({where.filename}, line {where.lineno})"

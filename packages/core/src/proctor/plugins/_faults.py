from __future__ import annotations

import importlib
import traceback
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal


class Code(StrEnum):
    """What can be wrong with a plugin. The values are stable: scripts and the docs may rely on them."""

    IMPORT_ERROR = "import-error"
    IMPORT_EXIT = "import-exit"
    IMPORT_TIMEOUT = "import-timeout"
    IMPORT_CRASH = "import-crash"
    CORE_VERSION = "core-version"
    NAME_TAKEN = "name-taken"
    UNKNOWN_HOOK = "unknown-hook"
    BAD_HOOK = "bad-hook"
    HOOK_RAISED = "hook-raised"
    BAD_RECORD = "bad-record"
    NO_RECORD = "no-record"
    UNDECLARED_RECORD = "undeclared-record"
    BAD_ENTRY = "bad-entry"
    UNKNOWN_GROUP = "unknown-group"
    BAD_METADATA = "bad-metadata"
    MISSING_REQUIREMENT = "missing-requirement"
    SLOW_IMPORT = "slow-import"
    HEAVY_IMPORT = "heavy-import"
    NO_CORE_REQUIREMENT = "no-core-requirement"
    SHADOWED = "shadowed"


_IMPORTLIB = str(importlib.__file__)
_WARNINGS = frozenset(
    {
        Code.UNDECLARED_RECORD,
        Code.UNKNOWN_GROUP,
        Code.SLOW_IMPORT,
        Code.HEAVY_IMPORT,
        Code.NO_CORE_REQUIREMENT,
        Code.SHADOWED,
    }
)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a plugin, kept so that it breaks nothing else.

    Args:
        code: what is wrong.
        message: one sentence or two: what, where, the value seen, what to do.
        distribution: whose fault it is, or the ``--plugin`` that was given.
        kind, name: the component it concerns; empty when it concerns the whole module.
        module: the module, when one was to be imported.
        detail: the traceback of what the plugin raised.
    """

    code: Code
    message: str
    distribution: str
    kind: str = ""
    name: str = ""
    module: str = ""
    detail: str = ""

    @property
    def severity(self) -> Literal["error", "warning"]:
        """``error`` when the component can't be used, ``warning`` when it can."""
        return "warning" if self.code in _WARNINGS else "error"


def traceback_of(error: BaseException) -> str:
    """The traceback from where the plugin's own code begins."""
    where = error.__traceback__
    here = str(Path(__file__).parent)
    while where is not None and where.tb_frame.f_code.co_filename.startswith((here, "<frozen importlib", _IMPORTLIB)):
        where = where.tb_next
    return _without_secrets("".join(traceback.format_exception(type(error), error, where)))


def said(error: BaseException) -> str:
    """What ``error`` says, by its type and its text."""
    return _without_secrets(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def _without_secrets(text: str) -> str:
    from proctor.schema import redact_text  # it brings pydantic, which listing plugins can do without

    return redact_text(text)

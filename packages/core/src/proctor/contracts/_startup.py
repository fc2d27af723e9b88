from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StartupContext:
    """What ``proctor_startup`` is given, before any task file is loaded.

    Args:
        core_version: the version of the running ``proctor-core``.
        environ: the process's environment, to be changed in place (aliases such as ``OTHER_LOG_DIR`` to
            ``PROCTOR_LOG_DIR``).

    Example:
        >>> from proctor.contracts import StartupContext
        >>> context = StartupContext(core_version="0.1.0", environ={"ACME_LOG_DIR": "logs/acme"})
        >>> context.environ.setdefault("PROCTOR_LOG_DIR", context.environ["ACME_LOG_DIR"])
        'logs/acme'
    """

    core_version: str
    environ: MutableMapping[str, str]

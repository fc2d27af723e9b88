"""Python processes in which plugins are looked at, so that one that crashes or hangs is a finding too."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

TIMEOUT = 30.0  # seconds


def text_of(output: str | bytes | None) -> str:
    """What a process wrote that did not end: subprocess hands it over undecoded, whatever was asked for."""
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


def run_python(
    arguments: list[str], text: str, extra: Mapping[str, str] | None = None, timeout: float = TIMEOUT
) -> subprocess.CompletedProcess[str]:
    """Run this interpreter as this process sees modules, and wait for its end.

    Args:
        arguments: the interpreter's own.
        text: what it reads.
        extra: variables beside those of this process.
        timeout: seconds.

    Raises:
        subprocess.TimeoutExpired: after it was killed.
    """
    # -P: the folder that the person happens to be in must not add modules; everything else as in this process.
    environ = {**os.environ, **(extra or {}), "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        [sys.executable, "-P", *arguments],
        input=text,
        env=environ,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
    )

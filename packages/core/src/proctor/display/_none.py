"""No screen."""

from __future__ import annotations

from proctor.contracts import Display, MessageLevel, RunSnapshot

__all__ = ["NoneDisplay"]


class NoneDisplay(Display):
    """Shows nothing, except errors and warnings, which go to standard error."""

    def start(self, snapshot: RunSnapshot) -> None:
        """Nothing."""

    def update(self, snapshot: RunSnapshot) -> None:
        """Nothing."""

    def finish(self, snapshot: RunSnapshot, exit_code: int) -> None:
        """Nothing: whoever called ``eval()`` has the logs."""

    def message(self, text: str, level: MessageLevel = "info") -> None:
        """A warning or an error is written to standard error."""
        if level != "info":
            import sys

            from proctor.display._plain import write_line

            write_line(sys.stderr, f"{level}: {text}")

"""What an error means: for its sample, for its unit, for the exit code."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from dataclasses import dataclass

from proctor.schema import EvalError, EvalLog, own_metadata, redact_text

__all__ = ["ErrorPolicy", "eval_error", "exit_code", "stopped_by"]

_LONGEST = 100_000  # characters of a traceback; recursion errors and embedded data make far longer ones


def eval_error(error: BaseException) -> EvalError:
    """``error`` as the log keeps it: ``Name('message')`` and the traceback, without local variables or credentials."""
    text = redact_text("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    if len(text) > _LONGEST:
        text = text[: _LONGEST // 2] + "\n... (cut) ...\n" + text[-_LONGEST // 2 :]
    message = f"{type(error).__name__}({redact_text(str(error))!r})"
    return EvalError(message=message, traceback=text, traceback_ansi=text)


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """How many samples may fail.

    ``fail_on_error``: ``True`` none, ``False`` all; below 1 a share of the planned samples, from 1 on a count.
    """

    fail_on_error: bool | float = True
    continue_on_fail: bool = False

    def exceeded(self, errors: int, total: int | None) -> bool:
        """Whether ``errors`` failed samples of ``total`` (``None`` while unknown) are too many."""
        limit = self.fail_on_error
        if limit is True:
            return errors > 0
        if limit is False:
            return False
        if 0 < limit < 1:
            return total is not None and total > 0 and errors / total > limit
        return errors > limit if limit else errors > 0


def stopped_by(log: EvalLog) -> str:
    """Which budget of the run ended the unit, such as ``max_cost: $1.02 of $1.00``; empty when none did."""
    return str(own_metadata(log.eval).get("stopped_by", ""))


def exit_code(logs: Iterable[EvalLog]) -> int:
    """What a command that made ``logs`` returns.

    0 when all is done (errors within the threshold included), 1 when a unit was aborted or the run's budget was spent,
    3 when one finished with more errors than allowed, 130 when one was interrupted.
    """
    code = 0
    for log in logs:
        if log.status == "cancelled" and stopped_by(log):
            code = 1
        elif log.status == "cancelled":
            return 130
        elif log.status == "started" or (log.status == "error" and log.error is not None):
            code = 1
        elif log.status == "error":
            code = code or 3
    return code

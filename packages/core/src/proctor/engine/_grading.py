"""Asking the scorers of a log for grades: each is kept as it comes, and a failure is counted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import anyio
from anyio import to_thread

from proctor.contracts import UsageError
from proctor.engine._errors import ErrorPolicy, eval_error
from proctor.engine._grade import graded, joined_grades, new_grade
from proctor.engine._isolate import Isolated
from proctor.engine._options import RunOptions
from proctor.limits import SampleLimits, begin_limits
from proctor.log import Grades, Store, Transcript, begin_store, begin_transcript, span
from proctor.model import configure_model_logging
from proctor.monitor import Activity, begin_activity
from proctor.schema import EvalSample, Score, ScoreEvent
from proctor.scorer import Scorer
from proctor.solver import TaskState, set_sample_state

__all__ = ["Grading", "ScoringStopped", "TooManyFailures"]

_FAILED = "scoring_failed"
_PATIENCE = 0.1  # seconds between two looks whether the disk has space again


class ScoringStopped(Exception):
    """A scoring ended before all samples were done; the text says why, what is kept, and how to go on.

    Args:
        text: that.
        exit_code: of a command: 1, or 128 and the signal's number.
    """

    def __init__(self, text: str, exit_code: int = 1) -> None:
        super().__init__(text)
        self.exit_code = exit_code


class TooManyFailures(Exception):
    """Scorers failed on more samples than may."""


class _Failed(NamedTuple):
    """What stands in the place of a score when its scorer failed, and the failure in words."""

    score: Score
    text: str


@dataclass(slots=True)
class _Asked:
    """What scorers said of one sample; ``failure``: which of them failed and why, if one did."""

    grade: EvalSample
    failure: str | None


class Grading:
    """The grades of one log, asked for or known from a process that was stopped.

    Args:
        scorers: by the names of their scores.
        options: how they are run.
        grades: where grades are kept.
        total: samples in the log.
        state: makes the state that scorers are given, with a store.
        tell: called on any thread with how many samples are done, and of how many.
    """

    def __init__(
        self,
        scorers: Mapping[str, Scorer],
        options: RunOptions,
        grades: Grades,
        total: int,
        state: Callable[[EvalSample, Store], TaskState],
        tell: Callable[[int, int], object] | None,
    ) -> None:
        self._scorers, self._options, self._grades = scorers, options, grades
        self._total, self._state, self._tell = total, state, tell
        limit = options.fail_on_error
        self._policy = ErrorPolicy(True if limit is None else limit, bool(options.continue_on_fail))
        self._done = self._failures = self._asked = 0
        self._lock = threading.Lock()

    def count(self) -> None:
        """One more sample is done: whatever happens to this process, nobody is asked for it again."""
        with self._lock:
            self._done += 1
            if self._tell is not None:
                self._tell(self._done, self._total)

    async def ready(self) -> None:
        """Wait while grades can't be kept: until there is space on the disk, no more is paid for.

        Raises:
            Exception: what keeping them failed for.
        """
        while self._grades.error is None and self._grades.stalled is not None:  # noqa: ASYNC110 - a thread tells
            await anyio.sleep(_PATIENCE)
        if self._grades.error is not None:
            raise self._grades.error

    async def grade(self, sample: EvalSample) -> EvalSample:
        """The grade of a sample; scorers that came to their end on it in an earlier process are not asked again.

        Raises:
            TooManyFailures: scorers have failed on more samples than may.
            UsageError: a scorer says that it was given something bad.
        """
        earlier = joined_grades(sample, await to_thread.run_sync(self._grades.earlier, sample))
        left = [name for name in self._scorers if name not in graded(earlier)]
        if not left:
            self.count()
            return earlier
        asked = await Isolated(self._ask(sample, left))
        self._asked += 1
        if asked.failure is not None:
            self._failures += 1
            if not self._policy.continue_on_fail and self._policy.exceeded(self._failures, self._total):
                self._grades.keep(asked.grade, lambda: None)  # of several scorers, some may have come to their end
                raise TooManyFailures(f"{asked.failure} on sample {sample.id!r}, epoch {sample.epoch}")
        self._grades.keep(asked.grade, self.count)
        return joined_grades(sample, [earlier, asked.grade])

    async def _ask(self, sample: EvalSample, names: Sequence[str]) -> _Asked:
        limits, store = SampleLimits(), Store(sample.store)
        transcript = Transcript(limits.working_time)
        doer = Activity(sample.id, sample.epoch)
        doer.events = transcript.events
        begin_activity(doer)
        begin_limits(limits)
        begin_store(store)
        begin_transcript(transcript)
        configure_model_logging(self._options.log_model_api, self._options.log_images)
        state = self._state(sample, store)
        set_sample_state(state)
        scores: dict[str, Score] = {}
        ended: list[str] = []
        failure: str | None = None
        with span("scorers", type="scorers"):
            for name in names:
                with span(name, type="scorer"):
                    given = await self._given(name, state)
                    if isinstance(given, _Failed):
                        given, failure = given
                    else:
                        ended.append(name)
                    if given is None:
                        continue
                    scores[name] = given
                    usage, roles = dict(limits.model_usage), dict(limits.role_usage) or None
                    transcript.event(
                        ScoreEvent(score=given, target=sample.target, scorer=name, model_usage=usage, role_usage=roles)
                    )
        grade = new_grade(sample, ended)
        grade.scores, grade.events = scores, transcript.events
        grade.model_usage, grade.role_usage = limits.model_usage, limits.role_usage
        return _Asked(grade, failure)

    async def _given(self, name: str, state: TaskState) -> Score | _Failed | None:
        left = self._options.retry_on_error or 0
        while True:
            try:
                score = await self._scorers[name](state, state.target)
                if score is not None and not isinstance(score, Score):
                    raise TypeError(f"the scorer {name!r} returned {score!r:.100}, which is no Score")
                return score
            except UsageError as error:
                if not self._asked:  # bad input, most likely, and nothing has been paid for
                    raise
                why = str(error)
            except (Exception, SystemExit) as error:  # a script's sys.exit() is its sample's affair
                why = eval_error(error).message
            if not left:
                return _Failed(Score.unscored(_FAILED, explanation=why), f"the scorer {name!r} failed ({why})")
            left -= 1

    def stopped(self, why: str, exit_code: int = 1) -> ScoringStopped:
        """The error that says what is kept and how to go on; to be made when the grades are written."""
        text, kept = f"{why}. {self._done:,} of {self._total:,} samples are done", self._grades.location
        if self._grades.error is not None:
            return ScoringStopped(f"{text}; what was graded last could not be kept ({self._grades.error})", exit_code)
        if self._grades.spilled:
            return ScoringStopped(
                f"{text}; grades wait in {kept}. When their store is back, `proctor log push {kept}` sends them, and "
                "then the same command goes on",
                exit_code,
            )
        return ScoringStopped(f"{text} and kept, in {kept}: the same command goes on from there", exit_code)

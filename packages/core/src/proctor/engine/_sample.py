"""Run one sample: enter its sandbox, solve, score, leave. Whatever ends it early, there is an ``EvalSample``."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio

from proctor.agent import use_scorers
from proctor.concurrency import Detached, bounded
from proctor.engine._asyncio_code import explained
from proctor.engine._deadline import CLEANUP, StoodStill, held, scoring_seconds
from proctor.engine._errors import eval_error
from proctor.engine._sandboxes import rooted, sample_spec, start_seconds
from proctor.engine._spec import loggable_sandbox
from proctor.engine._unit import Unit
from proctor.limits import LimitExceededError, SampleLimits, begin_limits, limit_in
from proctor.log import Store, Transcript, begin_store, begin_transcript, now_iso, span
from proctor.model import configure_model_logging, generation_settings
from proctor.monitor import activity
from proctor.sandbox import sample_sandbox
from proctor.schema import (
    ErrorEvent,
    EvalError,
    EvalSample,
    EvalSampleLimit,
    Sample,
    SampleInitEvent,
    SampleLimitEvent,
    Score,
    ScoreEvent,
    quick_id,
)
from proctor.scorer import Scorer
from proctor.solver import (
    TaskState,
    ToolCalls,
    model_generate,
    run_solver,
    sample_state,
    set_sample_state,
    state_from_sample,
)

__all__ = ["Attempt", "run_sample"]


@dataclass(slots=True, eq=False)
class Attempt:
    """One run of one sample, while it goes on.

    ``not_begun`` tells how many samples of the unit are still to begin, if that is known. ``limits``, ``transcript``
    and ``state`` are there once this one has begun; ``solved``: all but the cleanup is over.
    """

    unit: Unit
    sample: Sample
    epoch: int
    scorers: Mapping[str, Scorer]
    not_begun: Callable[[], int | None]
    uuid: str = field(default_factory=quick_id)
    started_at: str = field(default_factory=now_iso)
    started: float = field(default_factory=time.monotonic)
    limit: EvalSampleLimit | None = None
    error: EvalError | None = None
    scores: dict[str, Score] | None = None
    limits: SampleLimits | None = None
    transcript: Transcript | None = None
    state: TaskState | None = None
    solved: bool = False

    def given_up(self) -> EvalSample | None:
        """What there is of a sample that goes on somewhere and is not waited for; None before it began.

        It was cancelled, unless it had come to all but its cleanup.
        """
        if self.limits is None or self.transcript is None or self.state is None:
            return None
        if not self.solved:
            self.error = EvalError(message="CancelledError()", traceback="", traceback_ansi="")
        record = _finished(self, self.state, self.transcript, self.limits)
        record.__dict__["events"] = list(record.events)  # tasks that it started may add to its own list
        return record


async def run_sample(attempt: Attempt, on_cancel: Callable[[EvalSample], None]) -> EvalSample:
    """Run the sample once and return what came of it; errors and limits are in it, not raised.

    A cancellation goes on its way after ``on_cancel`` was given the sample with what it had.
    """
    unit, sample, epoch = attempt.unit, attempt.sample, attempt.epoch
    store = Store()
    limits = SampleLimits(
        message_limit=unit.message_limit,
        token_limit=unit.token_limit,
        turn_limit=unit.turn_limit,
        time_limit=unit.time_limit,
        working_limit=unit.working_limit,
        cost_limit=unit.cost_limit,
    )
    transcript = Transcript(limits.working_time)
    if (doer := activity()) is not None:
        doer.events = transcript.events
    assert sample.id is not None
    state = state_from_sample(
        sample, model=unit.model.name, sample_id=sample.id, epoch=epoch, uuid=attempt.uuid, store=store
    )
    attempt.limits, attempt.transcript, attempt.state = limits, transcript, state
    # Each sample has a context of its own, so what is set here needs no resetting and reaches no other sample.
    begin_limits(limits)
    begin_store(store)
    begin_transcript(transcript)
    configure_model_logging(unit.options.log_model_api, unit.options.log_images)
    set_sample_state(state)
    try:
        await _run(attempt, state, transcript, limits)
    except (Exception, SystemExit) as error:  # a script's sys.exit() is its sample's affair, not the run's
        attempt.error = eval_error(explained(error))
        transcript.event(ErrorEvent(error=attempt.error.model_dump()))
    except BaseException:  # a cancellation, alone or in a group with what it made fail
        attempt.error = EvalError(message="CancelledError()", traceback="", traceback_ansi="")
        on_cancel(_finished(attempt, sample_state() or state, transcript, limits))
        raise
    return _finished(attempt, sample_state() or state, transcript, limits)


def _loggable(sample: Sample) -> Sample:
    spec = loggable_sandbox(sample.sandbox)
    return sample if spec is sample.sandbox else sample.model_copy(update={"sandbox": spec})


async def _run(attempt: Attempt, state: TaskState, transcript: Transcript, limits: SampleLimits) -> None:
    with span("init", type="init"):
        transcript.event(
            SampleInitEvent.trusted(sample=_loggable(attempt.sample), state=_initial(attempt.sample, state))
        )
    unit = attempt.unit
    spec = sample_spec(unit, attempt.sample)
    if spec is None:
        await _inside(attempt, state, transcript, limits)
        return
    shared = spec is unit.sandbox
    spec, sample = rooted(spec, attempt.sample, unit.task.folder)
    async with sample_sandbox(
        spec,
        unit.name,
        sample,
        cleanup=unit.options.sandbox_cleanup,
        epoch=attempt.epoch,
        start_seconds=start_seconds(limits.time_limit),
        to_come=attempt.not_begun if shared else _none,
    ):
        await _inside(attempt, state, transcript, limits)


def _none() -> int:
    return 0


async def _inside(attempt: Attempt, state: TaskState, transcript: Transcript, limits: SampleLimits) -> None:
    """Solve and score, in the sandbox if there is one."""
    cleanup = attempt.unit.task.cleanup
    try:
        state = await _solve(attempt, state, transcript, limits)
        if attempt.scorers:
            await _judge(attempt, state, transcript, limits)
        attempt.solved = True
    finally:
        if cleanup is not None and not await bounded(partial(_clean_up, cleanup, state), CLEANUP):
            transcript.info({"left_behind": f"the task's cleanup took more than {CLEANUP:g} s"}, source="proctor")


async def _clean_up(cleanup: Callable[[TaskState], Any], state: TaskState) -> None:
    outcome = cleanup(state)
    if inspect.isawaitable(outcome):
        await outcome


async def _solve(attempt: Attempt, state: TaskState, transcript: Transcript, limits: SampleLimits) -> TaskState:
    model = attempt.unit.model

    async def generate(state: TaskState, tool_calls: ToolCalls = "loop", **kwargs: Any) -> TaskState:
        cache = kwargs.pop("cache", False)
        config = generation_settings(kwargs, "generate()") if kwargs else None
        return await model_generate(model, state, tool_calls, cache, config)

    async def solve() -> TaskState:
        with use_scorers(attempt.scorers), span("solvers", type="solvers"):
            return await run_solver(attempt.unit.solver, state, generate)

    async def solve_in_time() -> TaskState:
        with limits.enforce():
            return await solve()

    try:
        if limits.timed:
            return await held(solve_in_time, lambda: limits.overtime()[1], "solver", after=_take_over)
        return await solve()
    except (LimitExceededError, StoodStill, ExceptionGroup) as error:
        reached = limit_in(error)
        if isinstance(error, StoodStill):
            reached = limits.out_of(limits.overtime()[0])
            reached.message += f"; {error}"
        if reached is None:
            raise
        attempt.limit = EvalSampleLimit(type=reached.type, limit=reached.limit, reason=reached.message)  # type: ignore[arg-type]  # an unknown kind is refused here
        transcript.event(SampleLimitEvent(type=reached.type, message=reached.message, limit=reached.limit))
        return sample_state() or state


def _take_over(task: Detached[TaskState]) -> None:
    """Have the state here that the solver had last, in its own task."""
    state = task.context.run(sample_state)
    if state is not None:
        set_sample_state(state)


async def _judge(attempt: Attempt, state: TaskState, transcript: Transcript, limits: SampleLimits) -> None:
    """Score, within the time that a sample with a time limit has for it.

    Raises:
        TimeoutError: the scorers took longer.
        StoodStill: and they did not stop then.
    """
    seconds = scoring_seconds(limits.time_limit)
    if seconds is None:
        await _score(attempt, state, transcript, limits)
        return
    began = limits.elapsed()

    async def score() -> None:
        with anyio.move_on_after(seconds) as timed:
            await _score(attempt, state, transcript, limits)
        if timed.cancelled_caught:
            raise TimeoutError(
                f"the scorers took more than {seconds:g} s, which they have beside the time limit of the sample"
            )

    await held(score, lambda: limits.elapsed() - began - seconds, "scorer")


async def _score(attempt: Attempt, state: TaskState, transcript: Transcript, limits: SampleLimits) -> None:
    # What a sample used up must not keep a grader from judging what it has.
    limits.lift()
    scores: dict[str, Score] = dict(state.scores or {})
    with span("scorers", type="scorers"):
        for name, scorer in attempt.scorers.items():
            with span(name, type="scorer"):
                score = await scorer(state, state.target)
                if score is None:
                    continue
                if not isinstance(score, Score):
                    raise TypeError(
                        f"the scorer {name!r} returned {score!r:.100}, which is no Score: return Score(value=...), "
                        "or None when there is nothing to score"
                    )
                scores[name] = score
                transcript.event(
                    ScoreEvent.trusted(
                        score=score,
                        target=attempt.sample.target,
                        scorer=name,
                        model_usage=dict(limits.model_usage),
                        role_usage=dict(limits.role_usage) or None,
                    )
                )
    attempt.scores = scores


def _initial(sample: Sample, state: TaskState) -> dict[str, Any]:
    if isinstance(sample.input, str):  # by far the commonest case, and the text can't change under us
        first = state.messages[0]
        messages = [{"id": first.id, "content": sample.input, "source": "input", "role": "user"}]
    else:
        messages = [message.model_dump(mode="json", exclude_none=True) for message in state.messages]
    return {
        "messages": messages,
        "tools": [],
        "tool_choice": None,
        "store": {},
        "output": {"model": state.model, "choices": [], "completion": ""},
        "completed": False,
        "metadata": sample.metadata or {},
    }


def _finished(attempt: Attempt, state: TaskState, transcript: Transcript, limits: SampleLimits) -> EvalSample:
    unit, scores = attempt.unit, attempt.scores
    if attempt.error is not None:
        scores = {}
    asked = attempt.sample.__dict__  # an attribute of a record costs three times as much
    return EvalSample.trusted(
        id=asked["id"],
        epoch=attempt.epoch,
        input=asked["input"],
        choices=asked["choices"],
        target=asked["target"],
        sandbox=loggable_sandbox(sample_spec(unit, attempt.sample)),
        files=list(asked["files"]) if asked["files"] else None,
        setup=asked["setup"],
        messages=list(state.messages),
        output=state.output,
        scores=scores,
        metadata=state.metadata,
        store=state.store.to_dict(),
        events=transcript.events,
        model_usage=limits.model_usage,
        role_usage=limits.role_usage,
        started_at=attempt.started_at,
        completed_at=now_iso(),
        total_time=round(time.monotonic() - attempt.started, 3),
        working_time=round(limits.working_time(), 3),
        uuid=attempt.uuid,
        error=attempt.error,
        limit=attempt.limit,
        attachments={},
        turn_count=limits.turns or None,
        token_limit=unit.token_limit,
        message_limit=unit.message_limit,
        time_limit=unit.time_limit,
    )

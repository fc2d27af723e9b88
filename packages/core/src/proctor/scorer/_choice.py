from __future__ import annotations

from proctor.contracts import UsageError
from proctor.schema import CORRECT, INCORRECT, Score
from proctor.scorer._decorators import scorer
from proctor.scorer._mean import accuracy
from proctor.scorer._scoring import has_target, marked, no_response, without_target
from proctor.scorer._stderr import stderr
from proctor.scorer._types import Scorer
from proctor.solver import Choices, Target, TaskState, answer_character, answer_index


@scorer(metrics=[accuracy(), stderr()])
def choice() -> Scorer:
    """Whether the model chose exactly the right ones; for tasks that use ``multiple_choice()``.

    The target is a letter, several (``AC``, ``A,C`` or a list), or an empty list when none is right; an empty text is
    no target, and leaves the sample unscored. Letters mean the sample's own order of
    choices, however they were shuffled for the model.

    Raises:
        UsageError: (when scoring) for a sample without choices, or a target that names none of them.
    """

    async def score(state: TaskState, target: Target) -> Score:
        choices = state.choices
        if len(choices) == 0:
            raise UsageError(
                f"sample {state.sample_id!r} has no choices, which the choice scorer needs: give the samples choices, "
                f"or use another scorer (such as match or answer)"
            )
        if len(target) and not has_target(target):
            return without_target(state)
        wanted = _wanted(target, len(choices), state.sample_id)
        chosen = sorted(one.original_position for one in choices if one.correct is True)
        completion = state.output.completion
        matched = wanted == set(chosen)
        reason = None
        if not chosen and not matched:
            reason = no_response(completion) or "invalid_response_format"
        return Score(
            value=CORRECT if matched else INCORRECT,
            answer=", ".join(answer_character(index) for index in chosen),
            explanation=_explanation(choices, completion),
            reason=reason,
        )

    return marked(score)


def _wanted(target: Target, count: int, sample_id: int | str) -> set[int]:
    names = [name for one in target for name in _names(one.strip(), count)]
    unknown = [name for name in names if _position(name) is None or (_position(name) or 0) >= count]
    if unknown:
        raise UsageError(
            f"sample {sample_id!r}: the target names {', '.join(map(repr, unknown))}, but the choices are A to "
            f"{answer_character(count - 1)}. The target of a multiple-choice sample is a letter or a list of letters."
        )
    return {index for name in names if (index := _position(name)) is not None}


def _names(text: str, count: int) -> list[str]:
    # With more than 26 choices a name may have two characters ("12"); otherwise each character is a name.
    position = _position(text)
    if position is not None and position < count:
        return [text]
    return [char for char in text if char.isalnum()]


def _position(name: str) -> int | None:
    try:
        return answer_index(name)
    except ValueError:
        return None


def _explanation(choices: Choices, completion: str) -> str:
    if all(one.original_position == index for index, one in enumerate(choices)):
        return completion
    shown = "\n".join(f"{answer_character(index)}) {one.value}" for index, one in enumerate(choices))
    marked = ", ".join(answer_character(index) for index, one in enumerate(choices) if one.correct is True)
    return f"{completion}\n\n(The choices were shuffled for the model, which chose {marked or 'none'} of:\n{shown})"

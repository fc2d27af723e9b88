from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from proctor.contracts import UsageError
from proctor.schema import ChatMessage, ChatMessageUser, Score
from proctor.scorer._decorators import scorer
from proctor.scorer._grading import FACT_TEMPLATE, QA_TEMPLATE, default_grade_pattern, default_instructions
from proctor.scorer._mean import accuracy
from proctor.scorer._multi import panel
from proctor.scorer._stderr import stderr
from proctor.scorer._types import Scorer, ScoreReducer
from proctor.solver import Target, TaskState, warn_unless

if TYPE_CHECKING:
    from proctor.model import Model

Graders: TypeAlias = "str | Model | Sequence[str | Model] | None"
History: TypeAlias = "bool | Callable[[TaskState], str]"


@scorer(metrics=[accuracy(), stderr()])
def model_graded_qa(
    template: str | None = None,
    instructions: str | None = None,
    grade_pattern: str | None = None,
    include_history: History = False,
    partial_credit: bool = False,
    model: Graders = None,
    model_role: str | None = "grader",
    reducer: str | ScoreReducer = "majority",
) -> Scorer:
    """A model judges the answer by the sample's target, which is a criterion or an ideal answer.

    Args:
        template: the question to the grader, with ``{question}``, ``{answer}``, ``{criterion}``, ``{instructions}`` and
            the names of the sample's metadata.
        instructions: how to reply, in place of our own.
        grade_pattern: a regular expression whose first group is the grade in the reply.
        include_history: show the grader the whole conversation as the question; or a function that makes that text.
        partial_credit: whether the grader may give P (half a point).
        model: who grades: a model, or several who vote.
        model_role: the role whose model grades when ``model`` is not given; without one, the evaluated model does.
        reducer: how several grades become one: ``majority`` (of all graders; without one, no score), ``mean``, ...

    A reply without a grade is no score: NaN, with the reason ``grader_failed``.
    """
    text = QA_TEMPLATE if template is None else template
    if not callable(include_history):  # such a text may hold the answer
        warn_unless("answer", text, "model_graded_qa() does not show the grader the answer")
    ask = _Questions(text, instructions, grade_pattern, partial_credit, include_history)
    return _graded(ask, model, model_role, reducer)


@scorer(metrics=[accuracy(), stderr()])
def model_graded_fact(
    template: str | None = None,
    instructions: str | None = None,
    grade_pattern: str | None = None,
    include_history: History = False,
    partial_credit: bool = False,
    model: Graders = None,
    model_role: str | None = "grader",
    reducer: str | ScoreReducer = "majority",
) -> Scorer:
    """A model judges whether the answer holds the facts of the sample's target.

    The arguments are those of ``model_graded_qa``.
    """
    text = FACT_TEMPLATE if template is None else template
    if not callable(include_history):  # such a text may hold the answer
        warn_unless("answer", text, "model_graded_fact() does not show the grader the answer")
    ask = _Questions(text, instructions, grade_pattern, partial_credit, include_history)
    return _graded(ask, model, model_role, reducer)


class _Questions:
    """What a grader is asked, and how its reply is read."""

    def __init__(
        self,
        template: str,
        instructions: str | None,
        grade_pattern: str | None,
        partial_credit: bool,
        include_history: History,
    ) -> None:
        self._template = template
        self._instructions = default_instructions(partial_credit) if instructions is None else instructions
        self._own_pattern = grade_pattern is not None
        self._pattern = re.compile(grade_pattern or default_grade_pattern(partial_credit))
        self._include_history = include_history

    def prompt(self, state: TaskState, target: Target) -> str:
        """The question about one sample.

        Raises:
            UsageError: if the template has a name that is neither ours nor in the sample's metadata.
        """
        fields: dict[str, Any] = {
            **state.metadata,
            "question": self._question(state),
            "answer": state.output.completion,
            "criterion": target.text,
            "instructions": self._instructions,
        }
        try:
            return self._template.format(**fields)
        except (KeyError, IndexError, ValueError) as error:
            raise UsageError(
                f"the grading template can't be filled in for sample {state.sample_id!r}: {error!r}. It may name "
                f"{', '.join(map(repr, fields))}; write {{{{ and }}}} for braces that are meant as such."
            ) from None

    def _question(self, state: TaskState) -> str:
        if callable(self._include_history):
            return self._include_history(state)
        if not self._include_history:
            return state.input_text
        # Without the last answer, which the template shows by itself.
        earlier = [message for message in state.messages if message.role != "system"]
        if earlier and earlier[-1].role == "assistant":
            earlier.pop()
        return "\n\n".join(f"{message.role}: {message.text}" for message in earlier)

    def grade(self, reply: str) -> str | None:
        """The grade in a reply; ``None`` without one."""
        found = self._pattern.search(reply)
        if found is None:
            return None
        grade: str = found.group(1) if self._pattern.groups else found.group(0)
        # Our own pattern takes words too; what an author's pattern finds is the author's.
        return grade if self._own_pattern else grade[0].upper()


def _graded(ask: _Questions, model: Graders, role: str | None, reducer: str | ScoreReducer) -> Scorer:
    if model is None or isinstance(model, str) or not isinstance(model, Sequence):
        return _grader(ask, model, role)
    return panel([_grader(ask, one, role) for one in model], reducer)


def _grader(ask: _Questions, model: str | Model | None, role: str | None) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        from proctor.model import get_model  # not needed by tasks that no model grades

        grader = get_model(model) if model is not None else get_model(role=role)
        question = ChatMessageUser(content=ask.prompt(state, target))
        output = await grader.generate([question])
        reply = output.completion
        grade = ask.grade(reply)
        asked: list[ChatMessage] = [question, output.message] if output.choices else [question]
        metadata = {"grading": [message.to_dict() for message in asked]}
        if grade is None:
            return Score(
                value=float("nan"),
                answer=state.output.completion,
                explanation=f"There is no grade in the grader's reply: {reply}",
                reason="grader_failed",
                metadata=metadata,
            )
        return Score(value=grade, answer=state.output.completion, explanation=reply, metadata=metadata)

    return score

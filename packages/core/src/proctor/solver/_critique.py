"""Self-critique: the model's answer is criticised, and the model answers again."""

from __future__ import annotations

from proctor.model import Model, get_model
from proctor.schema import ChatMessageUser
from proctor.solver._solver import Generate, Solver, solver
from proctor.solver._state import TaskState
from proctor.solver._template import fill, template_text, warn_unless

__all__ = ["self_critique"]

CRITIQUE = """\
Here are a question and an answer to it. Criticise the answer: say what is wrong with it or missing from it. If it is \
fully correct, say "The answer is fully correct." and nothing else.

<question>
{question}
</question>

<answer>
{completion}
</answer>

Critique: """

COMPLETION = """\
Here are a question, a first answer to it, and a critique of that answer. Write an improved answer.

<question>
{question}
</question>

<answer>
{completion}
</answer>

<critique>
{critique}
</critique>

If the first answer is correct already, repeat it word for word. Give your answer on a last line of its own, in the \
form "ANSWER: $ANSWER" (without the quotes), where $ANSWER is the answer to the question."""


@solver
def self_critique(
    critique_template: str | None = None,
    completion_template: str | None = None,
    model: str | Model | None = None,
) -> Solver:
    """Have the model's answer criticised, then let the model answer again with the critique before it.

    Args:
        critique_template: what the critic is asked, with ``{question}`` and ``{completion}`` (or a file that holds it).
        completion_template: what the model is asked then, with ``{critique}`` too (or a file that holds it).
        model: the critic; by default the model itself.
    """
    ask = template_text(critique_template or CRITIQUE)
    improve = template_text(completion_template or COMPLETION)
    warn_unless("completion", ask, "self_critique() does not show the critic the answer")
    warn_unless("critique", improve, "self_critique() does not show the model the critique")

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        critic = model if isinstance(model, Model) else get_model(model)
        known = {**state.metadata, "question": state.input_text, "completion": state.output.completion}
        critique = await critic.generate(fill(ask, **known))
        again = fill(improve, **known, critique=critique.completion)
        state.messages.append(ChatMessageUser(content=again))
        return await generate(state)

    return solve

"""Solvers: what takes a sample from its question to an answer."""

from proctor.solver._chain import Chain, as_chain, chain, current_generate, plan_steps, run_solver
from proctor.solver._choices import Choice, Choices, answer_character, answer_index
from proctor.solver._critique import self_critique
from proctor.solver._fork import fork
from proctor.solver._generate import generate, model_generate
from proctor.solver._messages import MessageList, input_messages
from proctor.solver._multiple_choice import MultipleChoiceTemplate, multiple_choice, parse_answers
from proctor.solver._prompt import (
    append_system_message,
    assistant_message,
    chain_of_thought,
    prompt_template,
    system_message,
    user_message,
)
from proctor.solver._solver import (
    Generate,
    Solver,
    SolverLike,
    ToolCalls,
    adapt_solver,
    register_adapter,
    solver,
    solver_name,
)
from proctor.solver._state import ModelName, TaskState, sample_state, set_sample_state, state_from_sample
from proctor.solver._target import Target
from proctor.solver._template import fill, template_text, warn_unless
from proctor.solver._use_tools import use_tools

__all__ = [
    "Chain",
    "Choice",
    "Choices",
    "Generate",
    "MessageList",
    "ModelName",
    "MultipleChoiceTemplate",
    "Solver",
    "SolverLike",
    "Target",
    "TaskState",
    "ToolCalls",
    "adapt_solver",
    "answer_character",
    "answer_index",
    "append_system_message",
    "as_chain",
    "assistant_message",
    "chain",
    "chain_of_thought",
    "current_generate",
    "fill",
    "fork",
    "generate",
    "input_messages",
    "model_generate",
    "multiple_choice",
    "parse_answers",
    "plan_steps",
    "prompt_template",
    "register_adapter",
    "run_solver",
    "sample_state",
    "self_critique",
    "set_sample_state",
    "solver",
    "solver_name",
    "state_from_sample",
    "system_message",
    "template_text",
    "use_tools",
    "user_message",
    "warn_unless",
]

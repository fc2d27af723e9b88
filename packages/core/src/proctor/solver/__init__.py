"""Solvers: what takes a sample from its question to an answer."""

from proctor.solver._chain import Chain, chain, plan_steps, run_solver
from proctor.solver._choices import Choice, Choices, answer_character, answer_index
from proctor.solver._generate import generate, model_generate
from proctor.solver._messages import MessageList, input_messages
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

__all__ = [
    "Chain",
    "Choice",
    "Choices",
    "Generate",
    "MessageList",
    "ModelName",
    "Solver",
    "SolverLike",
    "Target",
    "TaskState",
    "ToolCalls",
    "adapt_solver",
    "answer_character",
    "answer_index",
    "chain",
    "generate",
    "input_messages",
    "model_generate",
    "plan_steps",
    "register_adapter",
    "run_solver",
    "sample_state",
    "set_sample_state",
    "solver",
    "solver_name",
    "state_from_sample",
]

"""Forks: several solvers go on from one state, each on a copy."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import overload

from proctor.concurrency import collect
from proctor.log import span, use_store
from proctor.solver._chain import current_generate, run_solver
from proctor.solver._solver import Solver, SolverLike, solver_name
from proctor.solver._state import TaskState, set_sample_state

__all__ = ["fork"]


@overload
async def fork(state: TaskState, solvers: Solver) -> TaskState: ...


@overload
async def fork(state: TaskState, solvers: list[Solver]) -> list[TaskState]: ...


async def fork(state: TaskState, solvers: SolverLike | Sequence[SolverLike]) -> TaskState | list[TaskState]:
    """Run each solver on a copy of ``state`` (messages, store and all), at the same time.

    Args:
        state: where they start; it is not changed.
        solvers: one solver or agent, or a list of them.

    Returns:
        The state that each came to, in the order of ``solvers``.

    Raises:
        RuntimeError: if no solver is running here.
    """
    if not isinstance(solvers, list):
        return await _branch(state, solvers)
    return await collect(*[_branch(state, solver) for solver in solvers])


async def _branch(state: TaskState, solver: SolverLike) -> TaskState:
    generate = current_generate()
    copy = deepcopy(state)
    with use_store(copy.store), span(solver_name(solver), type="subtask"):
        set_sample_state(copy)
        try:
            return await run_solver(solver, copy, generate)
        finally:
            set_sample_state(state)

"""Solvers one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import overload

from proctor.log import span
from proctor.registry import loggable
from proctor.schema import EvalPlanStep
from proctor.solver._solver import Generate, Solver, SolverLike, adapt_solver, solver, solver_name, solver_params
from proctor.solver._state import TaskState, set_sample_state

__all__ = ["Chain", "as_chain", "chain", "current_generate", "plan_steps", "run_solver"]

_generate: ContextVar[Generate | None] = ContextVar("proctor_generate", default=None)


def current_generate() -> Generate:
    """The ``generate`` of the solver that is running here.

    Raises:
        RuntimeError: outside a solver.
    """
    generate = _generate.get()
    if generate is None:
        raise RuntimeError("no solver is running here: fork() and agents need the generate function of one")
    return generate


class Chain(Sequence[Solver]):
    """Solvers that run one after the other, until one says that the sample is completed.

    Args:
        solvers: the solvers; chains among them are taken apart.
    """

    def __init__(self, solvers: Sequence[SolverLike]) -> None:
        self._solvers: list[Solver] = []
        for each in solvers:
            if isinstance(each, Chain):
                self._solvers.extend(each)
            else:
                self._solvers.append(adapt_solver(each))
        self._named = [(solver_name(each), each) for each in self._solvers]

    @overload
    def __getitem__(self, index: int) -> Solver: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Solver]: ...

    def __getitem__(self, index: int | slice) -> Solver | Sequence[Solver]:
        return self._solvers[index]

    def __len__(self) -> int:
        return len(self._solvers)

    def __iter__(self) -> Iterator[Solver]:
        return iter(self._solvers)

    async def __call__(self, state: TaskState, generate: Generate) -> TaskState:
        """Run the solvers, each in a span of its own."""
        for name, each in self._named:
            state = await _step(name, each, state, generate)
            if state.completed:
                break
        return state


async def _step(name: str, each: Solver, state: TaskState, generate: Generate) -> TaskState:
    with span(name, type="solver"):
        after = await each(state, generate)
    if not isinstance(after, TaskState):
        raise TypeError(f"solver {name!r} returned {type(after).__name__}, not the state: end it with 'return state'")
    if after is not state:
        set_sample_state(after)
    return after


def as_chain(solver: SolverLike) -> Chain:
    """``solver`` as a chain, which may be one of a single solver."""
    return solver if isinstance(solver, Chain) else Chain([solver])


async def run_solver(solver: SolverLike, state: TaskState, generate: Generate) -> TaskState:
    """Run ``solver`` (a chain solver by solver), each in a span named after it.

    Raises:
        TypeError: if a solver does not return a state.
    """
    whole = as_chain(solver)
    token = _generate.set(generate)
    try:
        return await whole(state, generate)
    finally:
        _generate.reset(token)


@solver
def chain(*solvers: SolverLike | Sequence[SolverLike]) -> Solver:
    """Solvers one after the other; it stops early when one sets ``state.completed``.

    Args:
        solvers: solvers or agents, or sequences of them.
    """
    flat: list[SolverLike] = []
    for each in solvers:
        if isinstance(each, Sequence) and not isinstance(each, (Chain, str)):
            flat.extend(each)
        else:
            flat.append(each)
    return Chain(flat)


def plan_steps(solver: SolverLike) -> list[EvalPlanStep]:
    """How the log describes ``solver``: one step for each solver of a chain."""
    steps = []
    for each in as_chain(solver):
        params, passed = solver_params(each)
        steps.append(
            EvalPlanStep(solver=solver_name(each), params=loggable(dict(params)), params_passed=loggable(dict(passed)))
        )
    return steps

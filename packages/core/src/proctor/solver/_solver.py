"""What a solver is, and how a function becomes one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Literal, ParamSpec, Protocol, TypeAlias, overload, runtime_checkable

from proctor.registry import Kind, component, is_factory, is_registered, registry_info
from proctor.solver._state import TaskState

__all__ = [
    "Generate",
    "Solver",
    "SolverLike",
    "ToolCalls",
    "adapt_solver",
    "register_adapter",
    "solver",
    "solver_name",
]

P = ParamSpec("P")

ToolCalls: TypeAlias = Literal["loop", "single", "none"]


class Generate(Protocol):
    """Asks the evaluated model for its next message, and resolves the tool calls that it makes."""

    async def __call__(self, state: TaskState, tool_calls: ToolCalls = "loop", **kwargs: Any) -> TaskState:
        """Generate, and append what came to ``state.messages``.

        Args:
            state: the state to go on from; it is changed and returned.
            tool_calls: ``loop`` goes on until the model calls no tool any more, ``single`` resolves the first message's
                calls and stops, ``none`` leaves them to the caller.
            kwargs: ``cache``, and any field of ``GenerateConfig`` for this call alone.
        """
        ...


@runtime_checkable
class Solver(Protocol):
    """Takes a sample's state a step further."""

    async def __call__(self, state: TaskState, generate: Generate) -> TaskState:
        """Change ``state`` and return it."""
        ...


# Agents live in a room above this one: what they make is turned into a solver by the adapter that their room registers.
_adapters: dict[Kind, Callable[[Any], Solver]] = {}

SolverLike: TypeAlias = Any
"""A solver, or something with an adapter (an agent)."""


def register_adapter(kind: Kind, adapt: Callable[[Any], Solver]) -> None:
    """Let components of ``kind`` stand where a solver is asked for."""
    _adapters[kind] = adapt


def adapt_solver(candidate: SolverLike) -> Solver:
    """``candidate`` as a solver.

    Raises:
        TypeError: if it is none; the message says what was found and what to write.
    """
    if is_factory(candidate) and registry_info(candidate).kind in ("solver", *_adapters):
        info = registry_info(candidate)
        raise TypeError(
            f"{info.name} is no {info.kind} but the function that makes one: write {info.name}(), with parentheses"
        )
    for kind, adapt in _adapters.items():
        if is_registered(candidate, kind) and not is_registered(candidate, "solver"):
            return adapt(candidate)
    if not callable(candidate):
        raise TypeError(
            f"a solver was expected, found {type(candidate).__name__} {candidate!r}: "
            "pass what a @solver function returns, such as generate()"
        )
    return candidate  # type: ignore[no-any-return]


@overload
def solver(name: Callable[P, Solver]) -> Callable[P, Solver]: ...


@overload
def solver(name: str | None = None) -> Callable[[Callable[P, Solver]], Callable[P, Solver]]: ...


def solver(
    name: str | Callable[P, Solver] | None = None,
) -> Callable[P, Solver] | Callable[[Callable[P, Solver]], Callable[P, Solver]]:
    """Register a function that makes a solver, or a class whose instances are solvers.

    Written ``@solver`` or ``@solver("name")``. The log names the solver as the function is named, or ``name``, and
    notes the arguments that it was made with.
    """
    if callable(name):
        return component("solver", _adapting(name))
    return lambda factory: component("solver", _adapting(factory), name)


def _adapting(factory: Callable[P, Solver]) -> Callable[P, Solver]:
    """``factory``, with an agent that it may return turned into a solver."""

    @functools.wraps(factory)
    def make(*args: P.args, **kwargs: P.kwargs) -> Solver:
        return adapt_solver(factory(*args, **kwargs))

    return make


def solver_name(solver: SolverLike) -> str:
    """What logs call ``solver``."""
    for kind in ("solver", *_adapters):
        if is_registered(solver, kind):
            return registry_info(solver).name
    return getattr(solver, "__name__", None) or type(solver).__name__


def solver_params(solver: SolverLike) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """All arguments that ``solver`` was made with, and those that were passed."""
    for kind in ("solver", *_adapters):
        if is_registered(solver, kind):
            info = registry_info(solver)
            return info.params, info.params_passed
    return {}, {}

"""What a person writes: a task, and the function that makes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeAlias, overload

from proctor.contracts import UsageError
from proctor.dataset import Dataset, IterableDataset, MemoryDataset
from proctor.model import GenerateConfig, Model
from proctor.registry import RegistryInfo, component, is_registered, registry_info
from proctor.schema import Sample, SandboxSpec
from proctor.scorer import Metric, Scorer, ScoreReducer
from proctor.solver import SolverLike, adapt_solver, chain, generate

__all__ = ["Epochs", "Task", "resolve_sandbox", "task", "task_info", "task_with"]

P = ParamSpec("P")
SandboxLike: TypeAlias = SandboxSpec | tuple[str, Any] | str | None


@dataclass(frozen=True, slots=True)
class Epochs:
    """How often each sample runs, and how its scores become one (``mean``, ``pass_at_2``, ... or reducers)."""

    epochs: int
    reducer: str | ScoreReducer | Sequence[str | ScoreReducer] | None = None

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ValueError(f"epochs must be at least 1, not {self.epochs}")


class Task:
    """A dataset, a solver and a scorer: what is evaluated, and how.

    Args:
        dataset: samples, or a dataset of them (one sample with an empty input when missing).
        setup: solvers that run first even when the solver is replaced.
        solver: a solver, an agent, or a list of solvers that run in order.
        cleanup: called with the state of each sample when it is done, whatever happened.
        scorer: a scorer or several.
        metrics: metrics in place of the scorers' own.
        model: the model to use unless the evaluation names one.
        config: generation settings.
        model_roles: models by role, such as ``{"grader": "openai/gpt-5"}``.
        sandbox: the sandbox of samples that name none: ``"docker"`` or ``("docker", "compose.yaml")``.
        epochs: how often each sample runs, a number or ``Epochs``.
        fail_on_error: ``True`` (the default) stops at the first error; a number is the share (below 1) or count of
            samples that may fail.
        continue_on_fail: run all samples even when too many failed.
        retry_on_error: how often a sample that failed is tried again.
        message_limit, token_limit, turn_limit, cost_limit: for each sample; messages, tokens, model turns, dollars.
        time_limit, working_limit: seconds for each sample; the second without waits for gates and retries.
        name: the task's name; that of the ``@task`` function if missing.
        version: change it when results can no longer be compared with earlier ones.
    """

    def __init__(
        self,
        dataset: Dataset | IterableDataset | Sequence[Sample] | None = None,
        setup: SolverLike | list[SolverLike] | None = None,
        solver: SolverLike | list[SolverLike] | None = None,
        cleanup: Callable[[Any], Any] | None = None,
        scorer: Scorer | Sequence[Scorer] | None = None,
        metrics: Sequence[Metric | Mapping[str, Sequence[Metric]]] | Mapping[str, Sequence[Metric]] | None = None,
        model: str | Model | None = None,
        config: GenerateConfig | None = None,
        model_roles: Mapping[str, str | Model] | None = None,
        sandbox: SandboxLike = None,
        epochs: int | Epochs | None = None,
        fail_on_error: bool | float | None = None,
        continue_on_fail: bool | None = None,
        retry_on_error: int | None = None,
        message_limit: int | None = None,
        token_limit: int | None = None,
        turn_limit: int | None = None,
        time_limit: float | None = None,
        working_limit: float | None = None,
        cost_limit: float | None = None,
        name: str | None = None,
        display_name: str | None = None,
        version: int | str = 0,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.dataset = _dataset(dataset)
        self.setup = None if setup is None else _one_solver(setup)
        self.solver: SolverLike = generate() if solver is None else _one_solver(solver)
        self.cleanup = cleanup
        self.scorers: list[Scorer] = [] if scorer is None else list(scorer) if _is_many(scorer) else [scorer]  # type: ignore[arg-type, list-item]  # told apart by _is_many
        self.metrics = metrics
        self.model = model
        self.config = config or GenerateConfig()
        self.model_roles = dict(model_roles or {})
        self.sandbox = resolve_sandbox(sandbox)
        self.epochs = Epochs(epochs) if isinstance(epochs, int) else epochs
        self.fail_on_error = fail_on_error
        self.continue_on_fail = continue_on_fail
        self.retry_on_error = retry_on_error
        self.message_limit = message_limit
        self.token_limit = token_limit
        self.turn_limit = turn_limit
        self.time_limit = time_limit
        self.working_limit = working_limit
        self.cost_limit = cost_limit
        self.display_name = display_name
        self.version = version
        self.tags = list(tags or ())
        self.metadata = dict(metadata or {})
        self._name = name
        # Set when the task comes from a file.
        self.file: str | None = None
        self.folder: str | None = None

    @property
    def name(self) -> str:
        """What logs call the task."""
        if self._name:
            return self._name
        return registry_info(self).name if is_registered(self) else "task"

    def steps(self) -> SolverLike:
        """Set-up and solver as one."""
        if self.setup is None:
            return self.solver
        return chain(self.setup, self.solver)


def _dataset(dataset: Dataset | IterableDataset | Sequence[Sample] | None) -> Dataset | IterableDataset:
    if dataset is None:
        return MemoryDataset([Sample(input="")])
    return dataset if isinstance(dataset, Dataset | IterableDataset) else MemoryDataset(list(dataset))


def _is_many(value: object) -> bool:
    return isinstance(value, (list, tuple))


def _one_solver(solver: SolverLike | list[SolverLike]) -> SolverLike:
    if _is_many(solver):
        return chain(*solver)
    adapt_solver(solver)  # refuses what is no solver here, where the author sees it
    return solver


def resolve_sandbox(sandbox: SandboxLike) -> SandboxSpec | None:
    """A sandbox as written (``"docker"``, ``("docker", config)``) as a specification."""
    if sandbox is None or isinstance(sandbox, SandboxSpec):
        return sandbox
    if isinstance(sandbox, str):
        name, colon, config = sandbox.partition(":")
        return SandboxSpec(type=name, config=config if colon else None)
    return SandboxSpec(type=sandbox[0], config=sandbox[1])


@overload
def task(function: Callable[P, Task]) -> Callable[P, Task]: ...


@overload
def task(*, name: str | None = None, **attribs: Any) -> Callable[[Callable[P, Task]], Callable[P, Task]]: ...


def task(
    function: Callable[P, Task] | None = None, *, name: str | None = None, **attribs: Any
) -> Callable[P, Task] | Callable[[Callable[P, Task]], Callable[P, Task]]:
    """Make a function that returns a ``Task`` known by name: ``@task`` or ``@task(name="...", light=True)``.

    Other keywords are attributes that ``proctor list tasks`` shows and filters by.

    Raises:
        UsageError: for an async function.
    """
    if function is not None:
        return component("task", _synchronous(function))
    return lambda decorated: component("task", _synchronous(decorated), name, attribs)


def _synchronous(function: Callable[P, Task]) -> Callable[P, Task]:
    if inspect.iscoroutinefunction(function):
        raise UsageError(
            f"the task {function.__name__!r} is an async function: write def, not async def. It only puts a Task "
            "together; what awaits belongs into a solver"
        )
    return function


def task_info(task: Task) -> RegistryInfo:
    """The name, arguments and attributes of ``task`` (empty ones when it was made without ``@task``)."""
    return registry_info(task) if is_registered(task) else RegistryInfo("task", task.name)


def task_with(task: Task, **changes: Any) -> Task:
    """Change a task in place and return it: ``task_with(mmlu(), epochs=3, scorer=exact())``.

    Raises:
        TypeError: for a name that is no argument of ``Task``.
    """
    for name, value in changes.items():
        if name == "scorer":
            task.scorers = list(value) if _is_many(value) else [value]
        elif name == "solver":
            task.solver = _one_solver(value)
        elif name == "setup":
            task.setup = None if value is None else _one_solver(value)
        elif name == "dataset":
            task.dataset = _dataset(value)
        elif name == "sandbox":
            task.sandbox = resolve_sandbox(value)
        elif name == "epochs":
            task.epochs = Epochs(value) if isinstance(value, int) else value
        elif name == "name":
            task._name = value
        elif hasattr(task, name):
            setattr(task, name, value)
        else:
            raise TypeError(f"a task has nothing called {name!r}")
    return task

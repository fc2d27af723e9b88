"""Finding tasks, solvers and scorers by what a person calls them: files, folders, installed packages, objects."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from proctor.contracts import UsageError
from proctor.engine._list_tasks import TaskInfo, list_tasks, near, task_files
from proctor.engine._make_task import load_task, source_file, where_raised, working_in
from proctor.engine._task import Task
from proctor.plugins import source_spec
from proctor.registry import Kind, create, is_registered, registered, registry_info

__all__ = ["TaskLike", "TaskSource", "find_scorer", "find_solver", "find_tasks", "learn_components"]


@dataclass(frozen=True, slots=True)
class TaskSource:
    """Where one task of an evaluation comes from: a function to call once for each model, or a task as it is."""

    name: str
    origin: str
    make: Any

    def load(self, args: Mapping[str, Any]) -> Task:
        """Make the task.

        Raises:
            UsageError: for arguments that the function does not take, or when it raises.
        """
        if isinstance(self.make, Task):
            if args:
                raise UsageError(
                    f"task {self.name!r} was given as an object, so it takes no arguments: {', '.join(args)}"
                )
            return self.make
        return load_task(self.make, args, self.origin)


TaskLike: TypeAlias = "str | Path | Task | TaskInfo | Any"


def find_tasks(specs: TaskLike | Sequence[TaskLike]) -> list[TaskSource]:
    """What ``specs`` name: files, folders, ``file.py@task``, ``package/task``, functions, tasks; in order.

    Raises:
        UsageError: for an empty list, and what does not exist, does not import, holds no task or two of one name.
    """
    many = list(specs) if isinstance(specs, (list, tuple)) else [specs]
    if not many:  # a list that a filter left empty is no wish to run the whole folder
        raise UsageError('no task was given: the list of tasks is empty. For all tasks of this folder give "."')
    found: list[TaskSource] = []
    for spec in many:
        found += _find(spec)
    places: dict[str, str] = {}
    for source in found:
        first = places.setdefault(source.name, source.origin)
        if first != source.origin:
            raise UsageError(
                f"two tasks are called {source.name!r}, in {first} and in {source.origin}: "
                "name one with @task(name=...), or evaluate one at a time"
            )
    return found


def _find(spec: TaskLike) -> list[TaskSource]:
    if isinstance(spec, Task):
        info = registry_info(spec) if is_registered(spec) else None
        return [TaskSource(spec.name, spec.file or (info.name if info else "an object"), spec)]
    if isinstance(spec, TaskInfo):
        return _from_file(Path(spec.file), spec.name)
    if isinstance(spec, (str, Path)):
        text = str(spec)
        path, at, name = text.partition("@")
        if at and not name and Path(path).exists():
            raise UsageError(f"{text} names no task: give {path}@NAME, or {path} for all of its tasks")
        if Path(path).is_dir():
            sources = _from_folder(Path(path))
            return _pick(sources, name, path) if name else sources
        if Path(path).is_file():
            return _from_file(Path(path), name)
        return _from_package(text)
    if callable(spec):
        if not is_registered(spec, "task"):
            raise UsageError(f"{getattr(spec, '__name__', spec)!r} is no task function: decorate it with @task")
        return [TaskSource(registry_info(spec).name, source_file(spec), spec)]
    raise UsageError(f"a task was expected, found {type(spec).__name__}: give a path, a @task function or a Task")


def _from_folder(folder: Path) -> list[TaskSource]:
    files = task_files(folder)
    if not files:
        raise UsageError(f"no file in {folder} has a function decorated with @task")
    return [source for file in files for source in _from_file(file, "")]


def _from_file(file: Path, name: str) -> list[TaskSource]:
    if file.suffix != ".py":
        raise UsageError(f"{file} is no Python file: a task file ends in .py and has a function decorated with @task")
    names = [info.name for info in list_tasks(file)]
    for twice in {known for known in names if names.count(known) > 1}:
        raise UsageError(f"{file} has two tasks called {twice!r}: rename one of them, or use @task(name=...)")
    module = _import_file(file)
    tasks = [value for value in vars(module).values() if callable(value) and is_registered(value, "task")]
    # A task imported from elsewhere belongs to the file that defines it, unless it is asked for by name.
    own = [value for value in tasks if value.__module__ == module.__name__ or registry_info(value).name == name]
    sources = [TaskSource(registry_info(value).name, str(file), value) for value in own]
    if not sources:
        raise UsageError(f"{file} has no task: decorate the function that returns a Task with @task")
    return _pick(sources, name, str(file)) if name else sources


def _pick(sources: list[TaskSource], name: str, where: str) -> list[TaskSource]:
    chosen = [source for source in sources if source.name == name]
    if not chosen and "," in name:
        each = " ".join(f"{where}@{one.strip()}" for one in name.split(",") if one.strip())
        raise UsageError(f"{where} has no task {name!r}: name several tasks one by one, {each}")
    if not chosen:
        names = [source.name for source in sources]
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(names) or 'none'}"
        raise UsageError(f"{where} has no task {name!r}: {hint}")
    return chosen


def _from_package(spec: str) -> list[TaskSource]:
    from proctor import plugins

    package, slash, name = spec.partition("/")
    if slash and "." not in package and package in plugins.names("tasks"):
        module = importlib.import_module(plugins.get("tasks", package).package)
        _import_all(module)
        sources = [
            TaskSource(info.name, f"package {package}", value)
            for value in _task_functions(module.__name__)
            for info in [registry_info(value)]
        ]
        return _pick(sources, name, f"package {package}")
    raise UsageError(f"there is no task file {spec}: {near(Path(spec.partition('@')[0]))}")


def _import_all(package: ModuleType) -> None:
    import pkgutil

    for entry in pkgutil.walk_packages(getattr(package, "__path__", []), package.__name__ + "."):
        with contextlib.suppress(ImportError):
            importlib.import_module(entry.name)


def _task_functions(package: str) -> list[Any]:
    return [value for value in registered("task") if f"{value.__module__}.".startswith(f"{package}.")]


def find_solver(spec: str, args: Mapping[str, Any]) -> Any:
    """Make the solver that ``NAME``, ``FILE@NAME`` or ``FILE`` (with one solver) means; a file is imported.

    Raises:
        UsageError: for a file that has no solver, or several and no name; and for a name that is none, or several's.
    """
    return _find_component("solver", spec, args)


def find_scorer(spec: str, args: Mapping[str, Any]) -> Any:
    """As ``find_solver``, for scorers."""
    return _find_component("scorer", spec, args)


def learn_components(task_file: str | None) -> bool:
    """Load a log's task file, if it is here, so that the scorers and metrics in it are known; whether it was there."""
    if not task_file or not Path(task_file).is_file():
        return False
    with contextlib.suppress(UsageError):  # its code does not load here, or it is another file of that name
        find_tasks(task_file)
    return True


def _find_component(kind: Kind, spec: str, args: Mapping[str, Any]) -> Any:
    path, _, name = spec.partition("@")
    if not Path(path).is_file():
        try:
            return create(kind, spec, **args)
        except LookupError as error:
            raise UsageError(f"--{kind} {spec}: {error.args[0]}") from error
    module = _import_file(Path(path))
    made = [value for value in vars(module).values() if callable(value) and is_registered(value, kind)]
    own = {registry_info(value).name: value for value in made if getattr(value, "__module__", "") == module.__name__}
    if name in own or (not name and len(own) == 1):
        return own[name or next(iter(own))](**args)
    raise UsageError(f"--{kind} {spec}: {path} has {', '.join(own) or f'no {kind}'}: give {path}@NAME")


def _import_file(file: Path) -> ModuleType:
    path = file.resolve()
    name = f"proctor_task_{path.stem}_{hashlib.blake2b(str(path).encode(), digest_size=4).hexdigest()}"
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # the file's neighbours can be imported, as when it is run as a script
    spec = source_spec(name, path)
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with working_in(folder):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UsageError(f"{file} can't be loaded: {where_raised(error, path)}") from error
    return module

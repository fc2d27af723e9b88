"""Finding and loading tasks: in files, folders and installed packages."""

from __future__ import annotations

import ast
import contextlib
import difflib
import hashlib
import importlib.util
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, get_type_hints

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

from proctor.contracts import UsageError
from proctor.engine._task import Task
from proctor.plugins import source_spec
from proctor.registry import Kind, create, is_registered, registered, registry_info
from proctor.schema import redact

__all__ = ["TaskInfo", "TaskLike", "TaskSource", "find_scorer", "find_solver", "find_tasks", "list_tasks", "load_task"]

_SKIP = {"__pycache__", "node_modules", "venv", "site-packages"}


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A ``@task`` function, found without running its file. ``params`` maps arguments to their defaults as text."""

    file: str
    name: str
    function: str = ""
    attribs: Mapping[str, Any] = field(default_factory=dict)
    doc: str = ""
    params: Mapping[str, str] = field(default_factory=dict)


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


def list_tasks(paths: str | Path | Sequence[str | Path] = ".", absolute: bool = False) -> list[TaskInfo]:
    """All ``@task`` functions in files and folders (searched through), in order of file and line; no file is run.

    A file in a folder that is no Python is left out, with a warning when it may hold a task.

    Raises:
        UsageError: for a path that does not exist, or a file that is no Python.
    """
    found: list[TaskInfo] = []
    for path in map(Path, [paths] if isinstance(paths, (str, Path)) else paths):
        for file in _files(path):
            try:
                found += _scan(file, str(file.resolve() if absolute else file))
            except (SyntaxError, ValueError, OSError) as error:
                if file == path:
                    raise UsageError(_unreadable(file, error)) from error
                warnings.warn(f"{_unreadable(file, error)}. It is left out", stacklevel=2)
    return found


def _unreadable(file: Path, error: Exception) -> str:
    if not isinstance(error, SyntaxError):
        return f"{file} can't be read: {getattr(error, 'strerror', None) or error}"
    if error.lineno is None:
        return f"{file} is no Python: {error.msg}"
    where = f"line {error.lineno}: {error.text.strip()}" if error.text else f"line {error.lineno}"
    return f"{file}:{error.lineno} is no Python: {type(error).__name__}: {error.msg} ({where})"


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif path.is_dir():
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIP)
            for name in sorted(names):
                if name.endswith(".py") and not name.startswith("."):
                    yield Path(folder, name)
    else:
        raise UsageError(f"there is no file or folder {path}: {_near(path)}")


def _near(path: Path) -> str:
    folder = path.parent
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    close = difflib.get_close_matches(path.name, names, n=3)
    if close:
        return f"did you mean {' or '.join(str(folder / name) for name in close)}?"
    return "give a .py file, a folder, file.py@task or package/task. `proctor list tasks` shows what is there"


def _scan(file: Path, shown: str) -> list[TaskInfo]:
    source = file.read_bytes()  # not text: which encoding it is in, the file says itself
    if b"task" not in source:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Python has to say of the code it says when the file is run
        tree = ast.parse(source, str(file))
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            marks = [decorator for decorator in node.decorator_list if _decorator_name(decorator) == "task"]
            found += [_describe(node, decorator, shown) for decorator in marks]
    return found


def _decorator_name(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""


def _describe(node: ast.FunctionDef, decorator: ast.expr, file: str) -> TaskInfo:
    attribs: dict[str, Any] = {}
    for keyword in decorator.keywords if isinstance(decorator, ast.Call) else []:
        if keyword.arg:
            try:
                attribs[keyword.arg] = ast.literal_eval(keyword.value)
            except ValueError:
                attribs[keyword.arg] = ast.unparse(keyword.value)
    arguments = [*node.args.posonlyargs, *node.args.args]
    defaults = [None] * (len(arguments) - len(node.args.defaults)) + list(node.args.defaults)
    pairs = [*zip(arguments, defaults, strict=True), *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    params = {argument.arg: ast.unparse(default) if default is not None else "" for argument, default in pairs}
    doc = (ast.get_docstring(node) or "").partition("\n")[0]
    return TaskInfo(file, str(attribs.pop("name", None) or node.name), node.name, attribs, doc, params)


def find_tasks(specs: TaskLike | Sequence[TaskLike]) -> list[TaskSource]:
    """What ``specs`` name: files, folders, ``file.py@task``, ``package/task``, functions, tasks; in order.

    Raises:
        UsageError: for what does not exist, does not import, holds no task or two of one name.
    """
    many = list(specs) if isinstance(specs, (list, tuple)) else [specs]
    found: list[TaskSource] = []
    for spec in many or ["."]:
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
        path, _, name = text.partition("@")
        if Path(path).is_dir():
            sources = _from_folder(Path(path))
            return _pick(sources, name, path) if name else sources
        if Path(path).is_file():
            return _from_file(Path(path), name)
        return _from_package(text)
    if callable(spec):
        if not is_registered(spec, "task"):
            raise UsageError(f"{getattr(spec, '__name__', spec)!r} is no task function: decorate it with @task")
        return [TaskSource(registry_info(spec).name, _source_file(spec), spec)]
    raise UsageError(f"a task was expected, found {type(spec).__name__}: give a path, a @task function or a Task")


def _from_folder(folder: Path) -> list[TaskSource]:
    files = list(dict.fromkeys(info.file for info in list_tasks(folder)))
    if not files:
        raise UsageError(f"no file in {folder} has a function decorated with @task")
    return [source for file in files for source in _from_file(Path(file), "")]


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
    raise UsageError(f"there is no task file {spec}: {_near(Path(spec.partition('@')[0]))}")


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
        raise UsageError(f"{file} can't be loaded: {_where(error, path)}") from error
    return module


@contextlib.contextmanager
def working_in(folder: str | None) -> Iterator[None]:
    """Make ``folder`` the working directory, so that a task file's relative paths are its own."""
    if folder is None:
        yield
        return
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _where(error: BaseException, file: Path | None) -> str:
    bare = isinstance(error, UsageError)  # made to be read as it is
    what = str(error) if bare else "".join(traceback.format_exception_only(type(error), error)).strip()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if file and frame.filename == str(file)]
    return f"{what} (line {frames[-1].lineno}: {frames[-1].line})" if frames else what


def _source_file(function: Any) -> str:
    return inspect.getsourcefile(inspect.unwrap(function)) or function.__module__


def load_task(function: Any, args: Mapping[str, Any], origin: str) -> Task:
    """Call a ``@task`` function in its own folder.

    Raises:
        UsageError: for arguments that it does not take or lacks, when it raises, or returns something else.
    """
    name = registry_info(function).name
    _check_args(function, args, name)
    args = _converted(function, args, name)
    file = Path(_source_file(function)).resolve()
    folder = str(file.parent) if file.is_file() else None
    try:
        with working_in(folder):
            task = function(**args)
    except UsageError as error:
        raise UsageError(f"task {name!r} in {origin}: {error}") from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"task {name!r} in {origin} raised {_where(error, file)}") from error
    if not isinstance(task, Task):
        raise UsageError(
            f"task {name!r} in {origin} returned {type(task).__name__}, not a Task: end it with `return Task(...)`"
        )
    task.file = str(file) if folder else None
    task.folder = folder
    return task


def _converted(function: Any, args: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The arguments as the types that the function's annotations ask for (``no`` for a bool, ``3`` for a float).

    Raises:
        UsageError: for a value that is nothing of the kind.
    """
    try:
        hints = get_type_hints(function)
    except Exception:  # annotations that can't be evaluated bind nobody
        hints = {}
    made = dict(args)
    for given, value in args.items():
        hint = hints.get(given)
        if hint is None or not isinstance(value, (str, int, float, list, dict)):
            continue
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(hint, config=ConfigDict(coerce_numbers_to_str=True))
        except PydanticUserError:  # a class of the author's own takes no configuration, or is no pydantic type
            continue
        try:
            made[given] = adapter.validate_python(value)
        except ValidationError as error:
            what = error.errors()[0]["msg"]
            seen = redact({given: value})[given]
            raise UsageError(f"task {name!r}: -T {given}={seen} does not fit its type: {what}") from None
    return made


def _check_args(function: Any, args: Mapping[str, Any], name: str) -> None:
    parameters = inspect.signature(function).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for given in args:
        if given not in parameters:
            close = difflib.get_close_matches(given, parameters, n=1)
            takes = f"it takes {', '.join(parameters)}" if parameters else "it takes none"
            hint = f"did you mean {close[0]!r}?" if close else takes
            raise UsageError(f"task {name!r} has no argument {given!r} (-T {given}=...): {hint}")
    missing = [
        parameter.name
        for parameter in parameters.values()
        if parameter.default is inspect.Parameter.empty
        and parameter.kind is not inspect.Parameter.VAR_POSITIONAL
        and parameter.name not in args
    ]
    if missing:
        raise UsageError(f"task {name!r} needs {', '.join(missing)}: give -T {missing[0]}=VALUE")

"""Which tasks there are: ``@task`` functions in files and folders, found without running them."""

from __future__ import annotations

import ast
import difflib
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.contracts import UsageError

__all__ = ["TaskInfo", "list_tasks", "near", "task_files"]

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


def list_tasks(paths: str | Path | Sequence[str | Path] = ".", absolute: bool = False) -> list[TaskInfo]:
    """All ``@task`` functions in files and folders (searched through), in order of file and line; no file is run.

    A file in a folder that is no Python is left out, with a warning when it may hold a task; a run refuses it.

    Raises:
        UsageError: for a path that does not exist, or a file that is no Python.
    """
    found: list[TaskInfo] = []
    for path in map(Path, [paths] if isinstance(paths, (str, Path)) else paths):
        for file in _files(path):
            try:
                found += _scan(file, str(file.resolve() if absolute else file), named=file == path)
            except (SyntaxError, ValueError, OSError) as error:
                if file == path:
                    raise UsageError(_unreadable(file, error)) from error
                warnings.warn(f"{_unreadable(file, error)}. It is left out", stacklevel=2)
    return found


def task_files(folder: Path) -> list[Path]:
    """The files in and below ``folder`` that have tasks, to be run: unlike in a list, none may be missing unseen.

    Raises:
        UsageError: for those that may have tasks and can't be read, all in one message.
    """
    found: list[Path] = []
    broken: list[str] = []
    for file in _files(folder):
        try:
            found += [file] if _scan(file, str(file)) else []
        except (SyntaxError, ValueError, OSError) as error:
            broken.append(_unreadable(file, error))
    if broken:
        these = "it or name" if len(broken) == 1 else "them or name"
        raise UsageError(f"{'; '.join(broken)}. Mend {these} the files to run one by one in place of {folder}")
    return found


class _AsyncTask(ValueError):
    def __init__(self, node: ast.AsyncFunctionDef) -> None:
        super().__init__(f"the task {node.name!r} is an async function: write def, not async def")
        self.lineno = node.lineno


def _unreadable(file: Path, error: Exception) -> str:
    if isinstance(error, _AsyncTask):
        return f"{file}:{error.lineno}: {error}"
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
        raise UsageError(f"there is no file or folder {path}: {near(path)}")


def near(path: Path) -> str:
    """What to do about a path that is not there: its close matches, or what would be right."""
    folder = path.parent
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    close = difflib.get_close_matches(path.name, names, n=3)
    if close:
        return f"did you mean {' or '.join(str(folder / name) for name in close)}?"
    return "give a .py file, a folder, file.py@task or package/task. `proctor list tasks` shows what is there"


def _scan(file: Path, shown: str, *, named: bool = False) -> list[TaskInfo]:
    source = file.read_bytes()  # not text: which encoding it is in, the file says itself
    if b"task" not in source and not named:  # whether a file that somebody names is Python is to be said in any case
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Python has to say of the code it says when the file is run
        tree = ast.parse(source, str(file))
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = [decorator for decorator in node.decorator_list if _decorator_name(decorator) == "task"]
            if marks and isinstance(node, ast.AsyncFunctionDef):
                raise _AsyncTask(node)
            found += [_describe(node, decorator, shown) for decorator in marks]
    return found


def _decorator_name(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""


def _describe(node: ast.FunctionDef | ast.AsyncFunctionDef, decorator: ast.expr, file: str) -> TaskInfo:
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

"""Making a task: its function is called in its own folder, with arguments of the types that it asks for."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import os
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

from proctor.contracts import UsageError
from proctor.engine._task import Task
from proctor.registry import registry_info
from proctor.schema import redact

__all__ = ["check_shared_args", "load_task", "source_file", "where_raised", "working_in"]


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


def where_raised(error: BaseException, file: Path | None) -> str:
    """An error, with its line in ``file`` when it came by there."""
    bare = isinstance(error, UsageError)  # made to be read as it is
    what = str(error) if bare else "".join(traceback.format_exception_only(type(error), error)).strip()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if file and frame.filename == str(file)]
    return f"{what} (line {frames[-1].lineno}: {frames[-1].line})" if frames else what


def source_file(function: Any) -> str:
    """The file that a function stands in; its module's name where there is none."""
    return inspect.getsourcefile(inspect.unwrap(function)) or function.__module__


def load_task(function: Any, args: Mapping[str, Any], origin: str) -> Task:
    """Call a ``@task`` function in its own folder.

    Raises:
        UsageError: for arguments that it does not take or lacks, when it raises, or returns something else.
    """
    name = registry_info(function).name
    _check_args(function, args, name)
    args = _converted(function, args, name)
    file = Path(source_file(function)).resolve()
    folder = str(file.parent) if file.is_file() else None
    try:
        with working_in(folder):
            task = function(**args)
    except UsageError as error:
        raise UsageError(f"task {name!r} in {origin}: {error}") from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"task {name!r} in {origin} raised {where_raised(error, file)}") from error
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
    texts: Mapping[str, str] = getattr(args, "texts", {})
    for given, value in args.items():
        hint = hints.get(given)
        if hint is None or not (given in texts or isinstance(value, (str, int, float, list, dict))):
            continue
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(hint, config=ConfigDict(coerce_numbers_to_str=True))
        except PydanticUserError:  # a class of the author's own takes no configuration, or is no pydantic type
            continue
        try:
            made[given] = _fitting(adapter, value, texts.get(given))
        except ValidationError as error:
            first = error.errors()[0]
            what = "give true or false" if first["type"].startswith("bool_") else first["msg"]
            seen = redact({given: value})[given]
            raise UsageError(f"task {name!r}: -T {given}={seen} does not fit its type: {what}") from None
    return made


def _fitting(adapter: TypeAdapter[Any], value: Any, text: str | None) -> Any:
    """What the type that is asked for makes of ``value``, or of the text that it was read from: text that looks like a
    number stays text where that is wanted, and text alone is a list of one.

    Raises:
        ValidationError: if it can be made of neither.
    """
    attempts: list[tuple[Any, bool]] = [(value, True), (text, False), (text.split(",") if text else [], False)]
    for attempt, strict in attempts if text is not None else ():
        with contextlib.suppress(ValidationError):
            return adapter.validate_python(attempt, strict=strict)
    return adapter.validate_python(value)


def check_shared_args(functions: Mapping[str, Any], args: Mapping[str, Any]) -> None:
    """Refuse arguments for several tasks that only some of them take, and say which do.

    Args:
        functions: by the task's name.
        args: of ``-T``; one that no task takes is left to ``load_task``, which knows close matches.

    Raises:
        UsageError: for the first such argument.
    """
    for given in args:
        takes = {name: _takes(function, given) for name, function in functions.items()}
        have, lack = [name for name in takes if takes[name]], [name for name in takes if not takes[name]]
        if have and lack:
            raise UsageError(
                f"-T {given}=... is taken by {', '.join(map(repr, have))} and not by {', '.join(map(repr, lack))}: "
                "an argument goes to every task, so evaluate these apart, each as FILE@NAME"
            )


def _takes(function: Any, name: str) -> bool:
    if not callable(function):  # a task as it is
        return False
    parameters = inspect.signature(function).parameters
    return name in parameters or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())


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

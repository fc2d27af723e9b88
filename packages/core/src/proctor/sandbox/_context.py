"""The sandboxes of the sample that is running here."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from proctor.contracts import SandboxEnvironment

__all__ = ["sandbox", "sandbox_context", "sandbox_default", "sandbox_with"]

_environments: ContextVar[Mapping[str, SandboxEnvironment]] = ContextVar("proctor_sandboxes", default={})  # noqa: B039 - read only
_default: ContextVar[str | None] = ContextVar("proctor_sandbox_default", default=None)


@contextmanager
def sandbox_context(environments: Mapping[str, SandboxEnvironment]) -> Iterator[None]:
    """Make ``environments`` those of the code inside; the first is the default one."""
    token, default = _environments.set(environments), _default.set(None)
    try:
        yield
    finally:
        _environments.reset(token)
        _default.reset(default)


def sandbox(name: str | None = None) -> SandboxEnvironment:
    """The sandbox called ``name`` of the running sample, or its default one.

    Raises:
        ProcessLookupError: if the sample has no sandbox.
        ValueError: if it has none called ``name``; the message names those that it has.
    """
    environments = _environments.get()
    if not environments:
        raise ProcessLookupError(
            "there is no sandbox here: name one for the task or the sample, "
            "such as Task(..., sandbox='docker') or --sandbox local"
        )
    name = name or _default.get() or next(iter(environments))
    # A provider may call its default sandbox anything; "default" always means that one.
    found = environments.get(name) or (next(iter(environments.values())) if name == "default" else None)
    if found is None:
        raise ValueError(f"the sample has no sandbox named {name!r}; it has {', '.join(environments)}")
    return found


@contextmanager
def sandbox_default(name: str) -> Iterator[None]:
    """Make ``name`` the default sandbox of the code inside.

    Raises:
        ValueError: if the sample has no sandbox of that name.
    """
    sandbox(name)
    token = _default.set(name)
    try:
        yield
    finally:
        _default.reset(token)


async def sandbox_with(file: str, on_path: bool = False, *, name: str | None = None) -> SandboxEnvironment | None:
    """The first sandbox of the sample that has ``file``, or ``None``.

    Args:
        file: a path, or the name of a command when ``on_path`` is true.
        on_path: look for a command on the sandbox's PATH.
        name: look in this sandbox only.
    """
    environments = _environments.get()
    for each in [sandbox(name)] if name is not None else environments.values():
        test = f"command -v {shlex.quote(file)}" if on_path else f"test -f {shlex.quote(file)}"
        if (await each.exec(["sh", "-c", test])).success:
            return each
    return None

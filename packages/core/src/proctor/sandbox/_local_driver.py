"""Makes local sandboxes, and knows those of other runs: each is a folder that says whose it is."""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from anyio import to_thread

from proctor.concurrency import kill_marked, marked_processes
from proctor.contracts import RunningSandbox, SandboxBrokenError, SandboxDriver, SandboxEnvironment, SandboxOwner
from proctor.sandbox._local import LocalSandbox, shell_in, user_name
from proctor.sandbox._owner import sandbox_owner
from proctor.schema import quick_id

__all__ = ["LocalSandboxDriver"]

_PREFIX = "proctor-sandbox-"
_OWNER = "owner.json"
_INSIDE = "work"
_log = logging.getLogger("proctor.sandbox")


class LocalSandboxDriver(SandboxDriver):
    """Makes local sandboxes."""

    def __init__(self) -> None:
        self._warned = False

    async def task_init(self, task: str, config: Any) -> None:
        """Warn, once a run, that nothing protects this machine."""
        if not self._warned:
            self._warned = True
            _log.warning(
                "sandbox 'local' runs what the model writes on this machine, unconfined, as %s; "
                "use a container (--sandbox docker) for models that you don't trust",
                user_name(),
            )

    async def sample_init(self, task: str, config: Any, metadata: dict[str, Any]) -> dict[str, SandboxEnvironment]:
        """Make a temporary directory."""
        return {"default": await to_thread.run_sync(_make, sandbox_owner())}

    async def sample_cleanup(self, envs: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        """Kill what still runs and remove the directory."""
        for each in envs.values():
            if isinstance(each, LocalSandbox):
                with anyio.CancelScope(shield=True):
                    await each.end()
                    folder = each.directory.parent
                    if folder.name.startswith(_PREFIX):  # of another maker's sandbox it would be anything
                        await to_thread.run_sync(_remove, folder)

    async def sandboxes(self) -> list[RunningSandbox]:
        """Those of this user on this machine."""
        return await to_thread.run_sync(lambda: [_running(folder) for folder in _folders()])

    async def remove(self, ids: Sequence[str]) -> list[str]:
        """Kill what still runs in them and remove their directories."""
        removed = []
        wanted = set(ids)
        for folder in await to_thread.run_sync(lambda: [each for each in _folders() if each.name in wanted]):
            if mark := _read(folder).mark:
                await kill_marked(mark)
            await to_thread.run_sync(_remove, folder)
            if folder.exists():
                raise SandboxBrokenError(f"{folder} could not be removed whole: look at who owns the files in it")
            removed.append(folder.name)
        return removed


def _make(owner: SandboxOwner) -> LocalSandbox:
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{owner.pid}-")).resolve()
    mark = quick_id()
    (folder / _OWNER).write_text(json.dumps({"mark": mark, "labels": owner.labels()}), "utf-8")
    inside = folder / _INSIDE
    inside.mkdir()
    return LocalSandbox(inside, mark)


def _folders() -> Iterator[Path]:
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")):
        try:
            mine = folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid == os.geteuid()
        except OSError:  # it went meanwhile
            continue
        if mine:
            yield folder.resolve()


class _Told(NamedTuple):
    """What the file of a sandbox says; nothing when the process died before it was written."""

    mark: str = ""
    owner: SandboxOwner | None = None
    created: datetime | None = None


def _read(folder: Path) -> _Told:
    try:
        told = json.loads((folder / _OWNER).read_text("utf-8"))
        mark, labels = told["mark"], told["labels"]
        created = datetime.fromtimestamp((folder / _OWNER).stat().st_mtime, UTC)
    except (OSError, ValueError, TypeError, KeyError):
        return _Told()
    # What runs in the sandbox can write to that file, too.
    if not (_is_text(mark) and isinstance(labels, dict) and all(map(_is_text, labels.values()))):
        return _Told()
    return _Told(mark, SandboxOwner.from_labels(labels), created)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _running(folder: Path) -> RunningSandbox:
    mark, owner, created = _read(folder)
    number = len(marked_processes(mark)) if mark else 0
    state = "no process" if not number else "1 process" if number == 1 else f"{number} processes"
    return RunningSandbox(folder.name, owner, state, created, shell_in(folder / _INSIDE))


def _remove(folder: Path) -> None:
    if folder.exists():  # somebody may have been quicker
        shutil.rmtree(folder, onerror=_make_writable)


def _make_writable(function: Any, path: str, error: Any) -> None:
    """What a command made read-only is removed as well; what can't be is left, and said so."""
    try:
        os.chmod(os.path.dirname(path), 0o700)
        os.chmod(path, 0o700)
        function(path)
    except OSError as failure:
        _log.warning("sandbox directory not removed: %s", failure)

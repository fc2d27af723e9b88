"""What a sample brings into its sandbox: files and a setup script."""

from __future__ import annotations

import base64
import binascii
import urllib.parse
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from anyio import to_thread

from proctor.contracts import SandboxEnvironment
from proctor.log import transcript
from proctor.schema import Sample, quick_id

__all__ = ["SETUP_TIMEOUT", "files_in", "folder_of", "load_contents", "prepare"]

SETUP_TIMEOUT = 300.0
"""Seconds that a setup script may take."""


async def prepare(sample: Sample, environments: Mapping[str, SandboxEnvironment]) -> None:
    """Write the sample's files and run its setup script.

    Raises:
        FileNotFoundError: if a file names a sandbox that there is not.
        RuntimeError: if the setup script failed; the message has its output.
    """
    for target, source in (sample.files or {}).items():
        environment, path = _place(target, environments)
        folder = folder_of(source)
        if folder is None:
            await environment.write_file(path, await to_thread.run_sync(load_contents, source))
            continue
        files = await to_thread.run_sync(files_in, folder)
        transcript().info({"file": target, "folder": str(folder), "files_copied": len(files)}, source="proctor")
        for file in files:
            name = str(PurePosixPath(path, file.relative_to(folder)))
            await environment.write_file(name, await to_thread.run_sync(file.read_bytes))
    if sample.setup:
        await _run_setup(sample.setup, next(iter(environments.values())))


def _place(target: str, environments: Mapping[str, SandboxEnvironment]) -> tuple[SandboxEnvironment, str]:
    name, colon, path = target.partition(":")
    if not colon:
        return next(iter(environments.values())), target
    if name == "default" and name not in environments:
        return next(iter(environments.values())), path
    if name not in environments:
        raise FileNotFoundError(
            f"file {target!r} of the sample is for a sandbox {name!r}, but there is only {', '.join(environments)}; "
            "a colon in a file's path separates the sandbox from the path"
        )
    return environments[name], path


def folder_of(source: str) -> Path | None:
    """The folder that ``source`` names, all of whose files are copied then; ``None`` for a file, data or a text."""
    path = None if source.startswith("data:") else _existing(source)
    return path if path is not None and path.is_dir() else None


def files_in(folder: Path) -> list[Path]:
    """All files below ``folder``, in order."""
    return [each for each in sorted(folder.rglob("*")) if each.is_file()]


def load_contents(source: str) -> str | bytes:
    """What ``source`` stands for: a data URI its data, the path of a file what is in it, anything else itself."""
    if source.startswith("data:"):
        data = _data_uri(source)
        if data is not None:
            return data
    path = _existing(source)
    return path.read_bytes() if path is not None and path.is_file() else source


def _data_uri(source: str) -> bytes | None:
    head, comma, body = source[len("data:") :].partition(",")
    if not comma:
        return None
    if not head.endswith(";base64"):
        return urllib.parse.unquote_to_bytes(body)
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error:
        return None


def _existing(source: str) -> Path | None:
    # Contents are often long texts: asking the file system about them would fail with "name too long".
    if not source or "\n" in source or "\0" in source or len(source) > 4096:
        return None
    try:
        path = Path(source).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError):
        return None


async def _run_setup(setup: str, environment: SandboxEnvironment) -> None:
    script = await to_thread.run_sync(load_contents, setup)
    file = f".proctor-setup-{quick_id()}"
    await environment.write_file(file, script)
    # The shell starts it by its first line, and as a shell script when it has none.
    command = f"chmod +x ./{file} && ./{file}; code=$?; rm -f ./{file}; exit $code"
    result = await environment.exec(["sh", "-c", command], timeout=SETUP_TIMEOUT)
    if not result.success:
        said = (result.stderr or result.stdout).strip()
        raise RuntimeError(f"the setup script of the sample failed with exit code {result.returncode}: {said[-2000:]}")

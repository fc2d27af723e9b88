"""A run answers questions of its user on a socket in a folder that only this user can enter.

One connection is one question and one answer, each a line of JSON with the version of the protocol in ``v``.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from proctor.monitor._runtime import runtime_dir

__all__ = ["PROTOCOL", "RunSocket", "ask", "has_run_sockets", "run_sockets"]

PROTOCOL = 1
"""Version of questions and answers; it changes when an old program would misread a new one."""
_PATIENCE = 2.0  # seconds that a program may take to put its question, or to read the answer
_ANSWER = 10.0  # seconds that a run may take to answer
_PAUSE = 0.1  # seconds until the next try where no question can be taken
_LONGEST = 1 << 16  # bytes of a question
_PATH = 100  # bytes of a path that an address has room for, on all systems
_FAMILY = getattr(socket, "AF_UNIX", None)


def has_run_sockets() -> bool:
    """Whether this platform has sockets of this kind."""
    return _FAMILY is not None


class RunSocket:
    """Answers questions on a thread of its own, from ``start`` until ``close``. No failure of it reaches the run.

    Args:
        run_id: of the run; it is in the socket's name.
        answer: makes an answer of a question.
    """

    def __init__(self, run_id: str, answer: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        self._name = f"run-{os.getpid()}-{run_id}.sock"
        self._answer = answer
        self._path: Path | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="proctor-status", daemon=True)

    def start(self) -> None:
        """Begin to listen, soon."""
        if has_run_sockets():
            self._thread.start()

    def close(self) -> None:
        """Take the socket away."""
        self._closed = True
        path = self._path
        if path is not None:
            with suppress(OSError), _connected(path, _PATIENCE):  # who waits for questions wakes up
                pass
        if self._thread.is_alive():
            self._thread.join(_PATIENCE)

    def _run(self) -> None:
        with suppress(Exception):  # no folder, no room for the path, ...: the run has no status then
            folder = runtime_dir()
            with socket.socket(_family(), socket.SOCK_STREAM) as listener:
                self._listen(listener, folder)
                try:
                    for _ in run_sockets():
                        pass  # what dead processes left behind goes
                    while not self._closed:
                        self._next(listener)
                finally:
                    if self._path is not None:
                        self._path.unlink(missing_ok=True)

    def _next(self, listener: socket.socket) -> None:
        """Answer the next question; whatever goes wrong with one is over with it."""
        try:
            connection, _ = listener.accept()
        except OSError:  # the run has used up its file descriptors, for instance: it may give some back
            time.sleep(_PAUSE)
            return
        with connection, suppress(OSError):
            connection.settimeout(_PATIENCE)
            self._serve(connection)

    def _listen(self, listener: socket.socket, folder: Path) -> None:
        """Nobody sees the socket under its name before it answers: one that refuses is taken for a dead one."""
        path = folder / self._name
        making = folder / f".{self._name}"
        making.unlink(missing_ok=True)
        with _address(making) as address:
            listener.bind(address)
        making.chmod(0o600)
        listener.listen(16)
        making.rename(path)
        self._path = path

    def _serve(self, connection: socket.socket) -> None:
        line = _line(connection, _LONGEST)
        if not line:
            return
        try:
            text = _text(self._told(json.loads(line)))
        except Exception as error:
            text = _text({"ok": False, "error": f"{type(error).__name__}: {error}"})
        connection.sendall(text.encode() + b"\n")

    def _told(self, question: Any) -> Mapping[str, Any]:
        if not isinstance(question, dict):
            return {"ok": False, "error": "a question is an object"}
        if question.get("v") != PROTOCOL:
            error = f"this run speaks version {PROTOCOL} of the protocol, not {question.get('v')}: use its own proctor"
            return {"ok": False, "error": error}
        return self._answer(question)


def run_sockets() -> Iterator[Path]:
    """The sockets of this user's runs that are on; those of dead processes are removed.

    Raises:
        UsageError: the folder can't be used.
    """
    if not has_run_sockets():
        return
    for path in sorted(runtime_dir().glob("run-*.sock")):
        try:
            if not stat.S_ISSOCK(path.lstat().st_mode):
                continue
            with _connected(path, _PATIENCE):
                pass
        except ConnectionRefusedError:  # nobody listens, so its process is dead, whoever has its number now
            path.unlink(missing_ok=True)
        except OSError:
            continue
        else:
            yield path


def ask(path: Path, question: Mapping[str, Any], patience: float = _ANSWER) -> dict[str, Any]:
    """Put a question to a run and return its answer.

    Args:
        path: of its socket.
        question: as JSON data.
        patience: seconds that it may take.

    Raises:
        OSError: it is gone, or does not answer.
        ValueError: it answered something else.
    """
    with _connected(path, patience) as connection:
        connection.sendall(json.dumps({"v": PROTOCOL, **question}).encode() + b"\n")
        line = _line(connection, None)
    if not line:
        raise ConnectionResetError(f"the run at {path} ended without an answer")
    answer = json.loads(line)
    if not isinstance(answer, dict):
        raise ValueError(f"the run at {path} answered {line[:100]!r}")
    return answer


def _text(answer: Mapping[str, Any]) -> str:
    return json.dumps({"v": PROTOCOL, **answer}, ensure_ascii=True, default=str)


def _line(connection: socket.socket, most: int | None) -> bytes:
    found = bytearray()
    while not found.endswith(b"\n"):
        chunk = connection.recv(65536)
        if not chunk or (most is not None and len(found) > most):
            break
        found += chunk
    return bytes(found)


@contextmanager
def _connected(path: Path, seconds: float) -> Iterator[socket.socket]:
    with socket.socket(_family(), socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        with _address(path) as address:
            connection.connect(address)
        yield connection


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """The path, or where an address has no room for it, a short one to the same place (Linux)."""
    if len(os.fsencode(path)) <= _PATH:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _family() -> int:
    assert _FAMILY is not None, "asked for only where it is there"
    return int(_FAMILY)

"""Runs answer on a socket that only their user reaches, and leave none behind."""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from run_status import until

from proctor.monitor import RunSocket, ask, run_sockets


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "proctor"


def _echo(question: Mapping[str, Any]) -> Mapping[str, Any]:
    if question.get("fail"):
        raise RuntimeError("broken")
    if question.get("odd"):
        return {"ok": True, "heard": {("a", "key"): "that JSON does not have"}}
    return {"ok": True, "heard": question}


@contextmanager
def _listening(run_id: str = "abc") -> Iterator[Path]:
    server = RunSocket(run_id, _echo)
    server.start()
    try:
        [path] = until(lambda: list(run_sockets()))
        yield path
    finally:
        server.close()


def test_a_question_is_answered_by_whom_it_was_put_to(folder: Path) -> None:
    with _listening() as path:
        assert path == folder / f"run-{os.getpid()}-abc.sock"
        assert ask(path, {"n": 1})["heard"] == {"v": 1, "n": 1}
        assert path.stat().st_mode & 0o777 == 0o600
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.iterdir()) == []


def test_what_fails_is_an_answer_and_the_next_question_is_answered() -> None:
    with _listening() as path:
        answer = ask(path, {"fail": True})
        assert (answer["ok"], answer["error"]) == (False, "RuntimeError: broken")
        assert ask(path, {})["ok"]


def test_an_answer_that_can_not_be_written_is_an_error_and_the_next_question_is_answered() -> None:
    with _listening() as path:
        answer = ask(path, {"odd": True})
        assert not answer["ok"] and answer["error"].startswith("TypeError: ")
        assert ask(path, {})["ok"]


def test_a_run_without_file_descriptors_answers_when_it_has_some_again(monkeypatch: pytest.MonkeyPatch) -> None:
    real, refused = socket.socket.accept, threading.Event()

    def accept(listener: socket.socket) -> Any:
        if not refused.is_set():
            refused.set()
            raise OSError(errno.EMFILE, "Too many open files")
        return real(listener)

    monkeypatch.setattr(socket.socket, "accept", accept)
    with _listening() as path:
        assert ask(path, {})["ok"]
    assert refused.is_set()


def test_another_version_of_the_protocol_is_refused() -> None:
    with _listening() as path:
        answer = ask(path, {"v": 2})
    assert not answer["ok"]
    assert "version 1" in answer["error"]


@pytest.mark.parametrize("line", [b"nonsense\n", b"[1]\n", b"\xff\n", b"", b"half"])
def test_nonsense_hurts_nobody(line: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _listening() as path:
        monkeypatch.chdir(folder)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(60)
            connection.connect(path.name)
            connection.sendall(line)
            connection.shutdown(socket.SHUT_WR)
            said = connection.makefile("rb").read()
        assert not said or json.loads(said)["ok"] is False
        assert ask(path, {})["ok"]


def test_sockets_of_dead_processes_go_and_other_files_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(mode=0o700)
    dead, other = folder / "run-1-dead.sock", folder / "run-2-file.sock"
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(dead.name)
    other.write_text("not a socket")
    assert list(run_sockets()) == []
    assert not dead.exists()
    assert other.exists()


def test_a_folder_with_a_long_path_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    with _listening() as path:
        assert ask(path, {"n": 2})["heard"]["n"] == 2


def test_a_folder_that_can_not_be_used_costs_nothing_but_the_status(folder: Path) -> None:
    folder.write_text("a file is in the way")
    server = RunSocket("abc", _echo)
    server.start()
    server.close()
    assert folder.read_text() == "a file is in the way"

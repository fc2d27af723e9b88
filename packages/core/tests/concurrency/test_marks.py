"""Processes found by a mark, in a made-up ``/proc``: how far a process has got is not to be arranged with real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.concurrency import _marks, marked_processes


def process(proc: Path, pid: int, environment: bytes, *, starting: bool = False, state: str = "S") -> Path:
    """A process of the tree; ``starting``: it is in the middle of execve(2)."""
    folder = proc / str(pid)
    folder.mkdir()
    fields = ["0"] * 50  # proc(5), from the third on
    fields[0] = state
    if state != "Z":
        fields[20] = "2560000"
        fields[47], fields[48] = ("0", "0") if starting else ("4096", str(4096 + len(environment)))
    (folder / "stat").write_text(f"{pid} (a ) b) {' '.join(fields)}\n")
    (folder / "environ").write_bytes(environment)
    return folder


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(_marks, "_PROC", str(tmp_path))
    (tmp_path / "self").mkdir()
    return tmp_path


def test_processes_are_found_by_each_of_their_marks(proc: Path) -> None:
    process(proc, 11, b"A=1\0PROCTOR_COMMAND=one two\0B=2\0")
    process(proc, 12, b"PROCTOR_COMMAND=twofold\0")
    assert [marked_processes(mark) for mark in ("one", "two", "twofold", "A")] == [[11], [11], [12], []]


def test_a_process_that_begins_a_program_is_waited_for(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = process(proc, 11, b"", starting=True)

    def begins(_: float) -> None:
        (folder / "environ").write_bytes(b"PROCTOR_COMMAND=mine\0")

    monkeypatch.setattr(_marks.time, "sleep", begins)
    assert marked_processes("mine") == [11]


def test_what_has_no_environment_is_not_waited_for(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process(proc, 11, b"")  # begun with none
    process(proc, 12, b"", state="Z")  # ended, as a thread of the kernel has no memory

    def wait(_: float) -> None:
        raise AssertionError("it waits")

    monkeypatch.setattr(_marks.time, "sleep", wait)
    assert marked_processes("mine") == []


def test_one_that_never_begins_is_given_up(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_marks, "_PATIENCE", 0.05)
    process(proc, 11, b"", starting=True)
    assert marked_processes("mine") == []

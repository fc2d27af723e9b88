"""A log that is written as a whole, by a process that dies meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.log import FileStore

DIES = """
import os, sys
from proctor.log import FileStore

def dies():
    yield b"n" * 100_000
    os._exit(9)

FileStore().replace(sys.argv[1], dies())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a file that is written has a name")
def test_who_dies_while_a_log_is_replaced_leaves_nothing_beside_it(tmp_path: Path) -> None:
    # given a log, and a process that dies in the middle of replacing it
    log = tmp_path / "a.json"
    FileStore().replace(str(log), [b"old"])
    assert subprocess.run([sys.executable, "-c", DIES, str(log)], timeout=60).returncode == 9

    # then the old one is there, and nothing else
    assert os.listdir(tmp_path) == ["a.json"]
    assert log.read_bytes() == b"old"

    # and who does not die replaces it
    FileStore().replace(str(log), [b"new"])
    assert os.listdir(tmp_path) == ["a.json"]
    assert log.read_bytes() == b"new"

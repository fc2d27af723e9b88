"""Any bytes in a log folder are shown as what they are: no traceback, no wait."""

from __future__ import annotations

import json
import os
import socket
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_samples import sample, spec, stats

from proctor.cli import main
from proctor.contracts import UsageError
from proctor.log import (
    LogWriter,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample_summaries,
    recover_eval_log,
)
from proctor.schema import EvalPlan


def _log(folder: Path, format: str) -> bytes:
    writer = LogWriter.open(str(folder), spec(2), EvalPlan(), format="json" if format == "json" else "eval")
    for number in (1, 2):
        writer.write(sample(number))
    writer.finish("success", None, stats())
    return Path(writer.location).read_bytes()


STAMP = "2026-11-29T11-19-30-00-00_task_"


@pytest.fixture
def aliens(tmp_path: Path) -> Iterator[Path]:
    """A folder of what is no log."""
    folder = tmp_path / "logs"
    folder.mkdir()
    whole, text = _log(tmp_path / "real", "eval"), _log(tmp_path / "real", "json")
    later = text.replace(b'"version": 2', b'"version": 99')
    assert later != text
    contents = {
        "empty.eval": b"",
        "text.eval": b"this is no log",
        "zeros.eval": bytes(1000),
        "cut.eval": whole[: len(whole) // 2],
        "head.eval": whole[:30],
        "tail.eval": whole[len(whole) // 2 :],
        f"{STAMP}empty.json": b"",
        f"{STAMP}array.json": b"[1, 2]",
        f"{STAMP}object.json": b'{"hello": "world"}',
        f"{STAMP}cut.json": text[: len(text) // 2],
        f"{STAMP}later.json": later,
        f"{STAMP}deep.json": b'{"a":' * 100_000,
        f"{STAMP}bytes.json": b"{\xff\xfe\x00",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    with zipfile.ZipFile(folder / "alien.eval", "w") as archive:
        archive.writestr("hello.txt", "hello")
    with zipfile.ZipFile(folder / "headless.eval", "w") as archive:
        archive.writestr("header.json", "[1, 2")
    with zipfile.ZipFile(folder / "later.eval", "w") as archive:
        header = json.loads(text)
        del header["samples"]
        archive.writestr("header.json", json.dumps({**header, "version": 99}))
    (folder / "folder.eval").mkdir()
    (folder / "dangling.eval").symlink_to("nowhere")
    (folder / "loop.eval").symlink_to("loop.eval")
    os.mkfifo(folder / "pipe.eval")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.getcwd()
        os.chdir(folder)  # a socket's path is at most 107 bytes long
        try:
            listening.bind("socket.eval")
        finally:
            os.chdir(here)
        yield folder


def test_a_folder_of_aliens_is_listed(aliens: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = {Path(info.name).name for info in list_eval_logs(str(aliens))}
    assert {"empty.eval", "alien.eval", "cut.eval", f"{STAMP}cut.json"} <= found
    assert main(["log", "list", "--log-dir", str(aliens)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(found)
    assert sum("not a log" in line for line in lines) >= 8
    assert main(["log", "list", "--log-dir", str(aliens), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(found)
    assert main(["log", "list", "--log-dir", str(aliens), "--status", "success"]) == 0


@pytest.mark.parametrize("command", ["dump", "recover", "headers"])
def test_an_alien_is_called_what_it_is(aliens: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    for path in sorted(aliens.iterdir()):
        code = main(["log", command, str(path)])
        output = capsys.readouterr()
        assert code in (0, 2), path.name
        assert "Traceback" not in output.err
        if code == 2:
            assert output.err.startswith("Error: "), path.name
            assert path.name in output.err, output.err


@pytest.mark.parametrize("format", ["eval", "json"])
def test_a_log_with_any_damage_is_read_or_refused(tmp_path: Path, format: str) -> None:
    whole = _log(tmp_path, format)
    path, target = tmp_path / f"{STAMP}damaged.{format}", tmp_path / f"recovered.{format}"

    @settings(max_examples=150)
    @given(
        st.integers(0, len(whole)),
        st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(1, 255)), max_size=4),
    )
    def look(end: int, flips: list[tuple[int, int]]) -> None:
        damaged = bytearray(whole)
        for place, bits in flips:
            damaged[place] ^= bits
        path.write_bytes(damaged[:end])
        list_eval_logs(str(tmp_path))
        with suppress(UsageError):
            read_eval_log(path, header_only=True)
        with suppress(UsageError):
            read_eval_log(path)
        with suppress(UsageError):
            read_eval_log_sample_summaries(path)
        with suppress(UsageError):
            recover_eval_log(path, target, overwrite=True)

    look()

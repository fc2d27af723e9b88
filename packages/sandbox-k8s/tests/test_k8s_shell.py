"""The shell text around a command, in every shell that this machine has."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from pathlib import Path

import pytest
from child_processes import running
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor_sandbox_k8s._output import Output
from proctor_sandbox_k8s._script import BOOT, KILL, MARK, READ, WRITE, Command, program

SHELLS = {"dash": ["dash"], "bash": ["bash"], "posix": ["bash", "--posix"], "busybox": ["busybox", "sh"]}
THERE = [name for name, words in SHELLS.items() if shutil.which(words[0])]


def run(shell: str, command: Command, *, go: bool = True, cut: int | None = None) -> Output:
    """What a command's shell says to a connection of pipes."""
    ready, token, mark = (secrets.token_hex(16) for _ in range(3))
    data = program(command, token, mark) + (f"{ready} go\n".encode() if go else b"") + command.input
    done = subprocess.run(
        [*SHELLS[shell], "-c", BOOT, "proctor", ready],
        input=data[:cut],
        capture_output=True,
        timeout=60,
        env={name: value for name, value in os.environ.items() if name != "ENV"},
    )
    output = Output(token, ready, len(command.input))
    output.feed(1, done.stdout)
    output.feed(2, done.stderr)
    assert output.ready
    return output


@pytest.mark.parametrize("shell", THERE)
def test_a_command_ends_with_its_code_and_all_that_it_wrote(shell: str) -> None:
    output = run(shell, Command(["sh", "-c", "echo out; echo err >&2; exit 3"]))

    assert (output.stdout, output.stderr, output.outcome().code) == (b"out\n", b"err\n", 3)
    assert output.closed, "the counts are right"


@pytest.mark.parametrize("shell", THERE)
def test_a_command_that_is_killed_says_so_by_its_code_alone(shell: str) -> None:
    output = run(shell, Command(["sh", "-c", "kill -9 $$"]))

    assert (output.outcome().code, output.stdout, output.stderr) == (137, b"", b"")


@pytest.mark.parametrize("shell", THERE)
@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (Command(["no-such-command-anywhere"]), "missing"),
        (Command(["/no/such/command"]), "missing"),
        (Command(["/etc/passwd"]), "denied"),
        (Command(["/etc"]), "denied"),
        (Command(["pwd"], cwd="/no/such/folder"), "cwd-missing"),
        (Command(["pwd"], cwd="/etc/passwd"), "cwd-file"),
    ],
)
def test_what_can_not_be_run_is_told_apart(shell: str, command: Command, kind: str) -> None:
    assert run(shell, command).outcome().kinds == (kind,)


@pytest.mark.parametrize("shell", THERE)
def test_a_command_that_ends_like_a_missing_one_is_not_taken_for_one(shell: str) -> None:
    for code in (126, 127, 255):
        outcome = run(shell, Command(["sh", "-c", f"exit {code}"])).outcome()

        assert (outcome.code, outcome.kinds) == (code, ())


@pytest.mark.parametrize("shell", THERE)
def test_input_is_given_to_the_byte(shell: str) -> None:
    data = bytes(range(256)) * 1000

    output = run(shell, Command(["cat"], input=data))

    assert output.stdout == data and not output.outcome().cut_input


@pytest.mark.parametrize("shell", THERE)
def test_a_command_need_not_read_its_input(shell: str) -> None:
    output = run(shell, Command(["sh", "-c", "exec <&-; echo done"], input=b"x" * 1_000_000))

    assert output.stdout == b"done\n" and not output.outcome().cut_input


@pytest.mark.parametrize("shell", THERE)
def test_input_that_ends_too_early_is_noticed(shell: str) -> None:
    output = run(shell, Command(["cat"], input=b"x" * 65536), cut=-10)

    assert output.outcome().cut_input


@pytest.mark.parametrize("shell", THERE)
def test_half_a_program_is_never_run(shell: str, tmp_path: Path) -> None:
    command = Command(["touch", str(tmp_path / "made")])

    assert not run(shell, command, go=False).ended
    for cut in range(1, 1200, 100):
        run(shell, command, cut=-cut)

    assert not (tmp_path / "made").exists()


_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
_NAMES = st.text("abcXYZ_", min_size=1, max_size=6).map(lambda name: f"V_{name}")


@pytest.mark.parametrize("shell", THERE)
@settings(max_examples=min(30, settings().max_examples))  # a process for each
@given(words=st.lists(_TEXT, max_size=4), env=st.dictionaries(_NAMES, _TEXT, max_size=2))
def test_words_and_variables_get_through_whatever_is_in_them(shell: str, words: list[str], env: dict[str, str]) -> None:
    show = "".join(f'printf "%s|" "${name}"; ' for name in env) + 'for each; do printf "<%s>" "$each"; done'

    output = run(shell, Command(["sh", "-c", show, "name", *words], env=env))

    want = "".join(f"{value}|" for value in env.values()) + "".join(f"<{word}>" for word in words)
    assert output.stdout == want.encode()


@pytest.mark.parametrize("shell", THERE)
def test_a_variable_may_have_a_name_that_shells_do_not_know(shell: str) -> None:
    output = run(shell, Command(["printenv", "a.b-c"], env={"a.b-c": "it's"}))

    assert output.stdout == b"it's\n"


@pytest.mark.parametrize("shell", THERE)
@pytest.mark.parametrize("folder", ["two words", "-P", "a'b", "ü", "line\nfeed"])
def test_a_command_starts_in_its_directory_whatever_its_name(shell: str, folder: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir()

    assert run(shell, Command(["pwd"], cwd=str(tmp_path / folder))).stdout == f"{tmp_path / folder}\n".encode()


@pytest.mark.parametrize("shell", THERE)
def test_a_file_is_written_and_read_by_the_same_text(shell: str, tmp_path: Path) -> None:
    path, data = str(tmp_path / "a folder" / "-rf"), bytes(range(256))

    wrote = run(shell, Command([*SHELLS[shell], "-c", WRITE, "sh", path], input=data))
    read = run(shell, Command([*SHELLS[shell], "-c", READ, "sh", path, "1000"]))
    large = run(shell, Command([*SHELLS[shell], "-c", READ, "sh", path, "100"]))
    missing = run(shell, Command([*SHELLS[shell], "-c", READ, "sh", path + "x", "100"]))
    folder = run(shell, Command([*SHELLS[shell], "-c", WRITE, "sh", str(tmp_path)], input=data))

    assert wrote.outcome().code == 0 and read.stdout == data
    assert [each.outcome().code for each in (large, missing, folder)] == [44, 41, 42]


@pytest.mark.parametrize("shell", THERE)
def test_what_is_left_in_the_background_does_not_hold_the_end_up(shell: str) -> None:
    ready, token, mark = (secrets.token_hex(16) for _ in range(3))
    command = Command(["sh", "-c", "echo before; sleep 600 & echo after"])
    words, pipe = [*SHELLS[shell], "-c", BOOT, "proctor", ready], subprocess.PIPE
    with running(words, stdin=pipe, stdout=pipe) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(program(command, token, mark) + f"{ready} go\n".encode())
        process.stdin.flush()

        lines = [process.stdout.readline() for _ in range(4)]
        subprocess.run([*SHELLS[shell], "-c", KILL, "sh", mark], timeout=60, check=True)
        told = process.stdout.read()
        ended = process.wait(60)

    assert lines[1:3] == [b"before\n", b"after\n"] and lines[3].startswith(f"{token} end".encode())
    assert told.startswith(f"{token} counts ".encode()), "with the last of them the streams are closed"
    assert ended == 0


@pytest.mark.parametrize("shell", THERE)
def test_a_kill_finds_all_that_a_command_has_started(shell: str, tmp_path: Path) -> None:
    mark, other = secrets.token_hex(16), secrets.token_hex(16)
    script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 600; sleep 600' & sleep 600; sleep 600"
    with (
        running(["sh", "-c", script], env={**os.environ, MARK: mark}) as one,
        running(["sh", "-c", script], env={**os.environ, MARK: other}) as another,
    ):
        subprocess.run([*SHELLS[shell], "-c", KILL, "sh", mark], timeout=60, check=True)

        assert one.wait(60) == -9
        assert another.poll() is None, "another command's processes live on"
        subprocess.run(["sh", "-c", KILL, "sh", other], timeout=60, check=True)

"""Which version of the API is spoken with an engine, and what later ones leave out or say otherwise."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from serving import serving

from proctor.contracts import PrerequisiteError, SandboxBrokenError, UsageError
from proctor_sandbox_docker._address import Address
from proctor_sandbox_docker._box import Container, DockerSandbox
from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker._images import Images
from proctor_sandbox_docker.compose import BuildSpec, ServiceSpec

pytestmark = pytest.mark.anyio


class Handler(BaseHTTPRequestHandler):
    engine: SomeEngine

    def do_GET(self) -> None:
        version, path = self.engine.parted(self.path)
        if version is not None and not number(self.engine.oldest) <= number(version) <= number(self.engine.newest):
            self.engine.refused.append(self.path)
            self._say(400, {"message": f"client version {version} is not supported"})
            return
        known: dict[str, dict[str, Any]] = {
            "version": {"ApiVersion": self.engine.newest, "MinAPIVersion": self.engine.oldest},
            "info": {"ID": "a"},
            "exec/1/json": {"Running": False, "ExitCode": self.engine.code, "Pid": 0},
            "containers/box/json": {
                "State": {"Status": "exited", "ExitCode": 0, "Running": False},
                "Config": {"Tty": False},
            },
        }
        self._say(200 if path in known else 404, known.get(path, {"message": "No such image"}))

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                self.rfile.read(size + 2)
            self.rfile.readline()
        else:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.endswith("/containers/box/exec"):
            self._say(201, {"Id": "1"})
        elif self.path.endswith("/exec/1/start"):
            said = self.engine.said.encode()
            self.wfile.write(b"HTTP/1.1 101 UPGRADED\r\n\r\n" + struct.pack(">BxxxL", 1, len(said)) + said)
            self.close_connection = True
        else:  # without "error", which is deprecated since 1.48 and may be left out
            self._say(200, {"errorDetail": {"message": "the disk is full"}})

    def _say(self, status: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing."""


class SomeEngine:
    """Says which versions it speaks, refuses others as engines do, and fails at what it is to pull, build or run."""

    def __init__(self) -> None:
        self.said, self.code = "", 128  # of a command, in place of its result
        self.oldest, self.newest = "1.24", "1.51"
        self.refused: list[str] = []
        handler = type("OwnHandler", (Handler,), {"engine": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = Address(f"tcp://127.0.0.1:{self.server.server_port}", "the test")

    def parted(self, path: str) -> tuple[str | None, str]:
        """Version and call of ``/v1.41/info``; older clients leave the version out."""
        first, _, rest = path.lstrip("/").partition("/")
        return (first[1:], rest) if first.startswith("v1.") else (None, path.lstrip("/"))


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@pytest.fixture
def some() -> Iterator[SomeEngine]:
    made = SomeEngine()
    with serving(made.server):
        yield made


@pytest.mark.parametrize(
    ("oldest", "newest", "spoken"),
    [
        ("1.12", "1.41", "1.41"),  # Docker 20.10, as old as can be
        ("1.24", "1.45", "1.45"),
        ("1.44", "1.52", "1.51"),  # Docker 29: not what nobody has tried, nor what it has dropped
        ("1.60", "1.99", "1.60"),
    ],
)
async def test_the_newest_version_that_was_tried_and_the_engine_speaks(
    some: SomeEngine, oldest: str, newest: str, spoken: str
) -> None:
    some.oldest, some.newest = oldest, newest
    engine = Engine(some.address)

    await engine.open()

    assert engine.api_version == spoken
    assert not some.refused and engine.info == {"ID": "a"}


async def test_an_engine_that_is_too_old_is_refused_with_what_is_needed(some: SomeEngine) -> None:
    some.newest = "1.40"

    with pytest.raises(UsageError, match=r"version 1\.40 of the API; Docker 20\.10 \(1\.41\)"):
        await Engine(some.address).open()


@pytest.mark.parametrize("what", ["pull", "build"])
async def test_a_pull_or_a_build_that_fails_is_seen_without_the_deprecated_field(
    some: SomeEngine, tmp_path: Path, what: str
) -> None:
    (tmp_path / "Dockerfile").write_text("FROM nothing\n")
    service = ServiceSpec("web", "box:1") if what == "pull" else ServiceSpec("web", build=BuildSpec(tmp_path))
    engine = Engine(some.address)
    await engine.open()

    with pytest.raises(PrerequisiteError, match="the disk is full"):
        await Images(engine).ready(service)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (128, "OCI runtime exec failed: exec failed: cannot exec in a stopped container"),
        (128, "FailedPrecondition: container 7908a47431c2 init process is not running: failed precondition"),
        (128, "anything else"),
        (126, "OCI runtime exec failed: exec failed: cannot exec in a stopped container: unknown"),
        (
            127,
            "OCI runtime exec failed: unable to create new parent process: namespace path: no such file or directory",
        ),
    ],
)
@pytest.mark.parametrize("how", ["exec", "read_file"])
async def test_a_command_that_came_when_its_container_was_about_to_end_has_no_result(
    some: SomeEngine, code: int, said: str, how: str
) -> None:
    some.code, some.said = code, f"{said}\r\n"
    engine = Engine(some.address)
    await engine.open()

    box = DockerSandbox(engine, Container("box", "box", "default", "/"))
    with pytest.raises(SandboxBrokenError, match="container box") as raised:
        await (box.exec(["sleep", "5"]) if how == "exec" else box.read_file("notes.txt"))

    assert raised.value.state == "exited (0)"


async def test_a_file_that_a_container_without_a_shell_does_not_have_is_not_found(some: SomeEngine) -> None:
    some.code = 127
    some.said = 'OCI runtime exec failed: exec failed: exec: "sh": executable file not found in $PATH: unknown\r\n'
    engine = Engine(some.address)
    await engine.open()

    with pytest.raises(FileNotFoundError, match=r"^/notes\.txt$"):
        await DockerSandbox(engine, Container("box", "box", "default", "/")).read_file("notes.txt")

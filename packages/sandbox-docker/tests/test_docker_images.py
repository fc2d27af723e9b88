"""Images that are pulled: once for all who want them, from a registry that speaks the protocol of the real ones."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import logging
import secrets
import tarfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from serving import serving

from proctor.contracts import PrerequisiteError
from proctor_sandbox_docker._engine import Engine
from proctor_sandbox_docker._images import Images
from proctor_sandbox_docker._progress import BuildProgress, PullProgress
from proctor_sandbox_docker.compose import BuildSpec, ServiceSpec

pytestmark = pytest.mark.anyio

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


class Registry:
    """One image behind the pull half of the OCI distribution protocol, on this machine's loopback."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        layer = _layer(f"mark {secrets.token_hex(8)}")
        archive = gzip.compress(layer)
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Cmd": ["/bin/sh"]},
                "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
            }
        ).encode()
        self.blobs = {_digest(blob): blob for blob in (archive, config)}
        kinds = (("config", "container.image.v1+json", config), ("layer", "image.rootfs.diff.tar.gzip", archive))
        parts = [
            {"mediaType": f"application/vnd.docker.{kind}", "size": len(blob), "digest": _digest(blob)}
            for _, kind, blob in kinds
        ]
        self.manifest = json.dumps(
            {"schemaVersion": 2, "mediaType": MANIFEST, "config": parts[0], "layers": parts[1:]}
        ).encode()
        registry = self

        class Handler(BaseHTTPRequestHandler):
            # To one who speaks TLS, a status line too: without one, some engines do not try again without TLS.
            default_request_version = "HTTP/1.0"

            def do_HEAD(self) -> None:
                self.do_GET()

            def do_GET(self) -> None:
                registry.asked.append(f"{self.command} {self.path}")
                body = registry.answer(self.path)
                self.send_response(404 if body is None else 200)
                if body is not None and "/manifests/" in self.path:
                    self.send_header("Content-Type", MANIFEST)
                    self.send_header("Docker-Content-Digest", _digest(body))
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body or b"")

            def log_message(self, format: str, *arguments: Any) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"

    def answer(self, path: str) -> bytes | None:
        if path == "/v2/":
            return b"{}"
        if "/manifests/" in path:
            return self.manifest if path.startswith("/v2/box/") else None
        return self.blobs.get(path.rpartition("/")[2])

    def pulls(self) -> int:
        """How often the image itself was fetched."""
        return sum("/blobs/" in line for line in self.asked) // 2


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _layer(text: str) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        info = tarfile.TarInfo("mark")
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text.encode()))
    return file.getvalue()


@pytest.fixture
def registry() -> Iterator[Registry]:
    made = Registry()
    with serving(made.server):
        yield made


async def test_an_image_is_pulled_once_for_all_who_want_it(
    engine_address: Any, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    # Given two runs, each with samples of two tasks that want the same image at once
    caplog.set_level(logging.INFO, "proctor.sandbox")
    runs = []
    for _ in range(2):
        engine = Engine(engine_address)
        await engine.open()
        runs.append(Images(engine))
    service = ServiceSpec("a", f"{registry.host}/box:1")
    names: list[str] = []

    async def want(images: Images) -> None:
        names.append((await images.ready(service)).name)

    # When all ask for it
    try:
        async with anyio.create_task_group() as group:
            for images in runs * 5:
                group.start_soon(want, images)
        # Then it came once, and it was said
        assert names == [service.image] * 10 and registry.pulls() == 1
        said = [record.getMessage() for record in caplog.records]
        assert said[0] == f"pulling {service.image} ..." and said[-1].startswith(f"pulling {service.image}: done after")
    finally:
        await engine.call("remove", lambda client: client.remove_image(service.image))


async def test_an_image_that_is_nowhere_is_said_with_what_helps_and_not_asked_for_again(
    engine_address: Any, registry: Registry
) -> None:
    # Given an image that the registry does not have, and a clock that stands
    engine = Engine(engine_address)
    await engine.open()
    now = [0.0]
    images = Images(engine, lambda: now[0])
    service = ServiceSpec("web", f"{registry.host}/nobox:1")
    # When several samples want it, one after the other
    for _ in range(3):
        with pytest.raises(PrerequisiteError) as caught:
            await images.ready(service)
    # Then the registry was asked once, until a minute has passed
    asked = len(registry.asked)
    said = str(caught.value)
    assert f"service 'web': the image {service.image} is not there, and can't be pulled" in said
    assert f"docker pull {service.image}" in said and "docker login" in said
    now[0] += 100
    with pytest.raises(PrerequisiteError):
        await images.ready(service)
    assert len(registry.asked) == 2 * asked


async def test_a_build_that_ends_before_it_says_anything_has_no_last_lines(engine_address: Any, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FORM nothing\n")
    engine = Engine(engine_address)
    await engine.open()
    with pytest.raises(PrerequisiteError, match=r"the image of service 'web' .* failed: (?s:.*)FORM") as caught:
        await Images(engine).ready(ServiceSpec("web", build=BuildSpec(tmp_path)))
    assert not str(caught.value).endswith("Its last lines:\n")


def test_how_far_a_pull_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "proctor.sandbox")
    times = iter([0.0, 1.0, 11.0, 11.0, 12.0, 30.0])
    progress = PullProgress("box", lambda: next(times))
    for current in (10, 40, 45):
        progress.see({"id": "a", "status": "Downloading", "progressDetail": {"current": current, "total": 100}})
    progress.end()
    assert [record.getMessage() for record in caplog.records] == [
        "pulling box ...",
        "pulling box: 40 %",
        "pulling box: done after 30 s",
    ]


def test_how_far_a_build_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "proctor.sandbox")
    times = iter([0.0, 11.0, 11.0, 20.0])
    progress = BuildProgress("the image", lambda: next(times))
    progress.see("Step 3/7 : RUN make all")
    progress.see(" ---> Running in 123")
    progress.end()
    assert [record.getMessage() for record in caplog.records][1:] == [
        "building the image: step 3 of 7: RUN make all",
        "building the image: done after 20 s",
    ]

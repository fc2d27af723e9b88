from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from serving import serving

from proctor.contracts import UsageError
from proctor.dataset import csv_dataset, file_dataset


class Web(ThreadingHTTPServer):
    """Serves one CSV file, and counts what is asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Web

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", "/data.csv")
            self.end_headers()
        elif self.path.startswith("/data.csv"):
            body = b"input,target,files\nq,a,\n"
            self.send_response(200)
            # A length that is too large: the connection breaks off before the end.
            self.send_header("Content-Length", str(len(body) + (100 if "cut" in self.path else 0)))
            self.end_headers()
            self.wfile.write(body)
        else:
            self.send_error(404)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def web() -> Iterator[Web]:
    server = Web()
    with serving(server):
        yield server


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("PROCTOR_CACHE_DIR", str(folder))
    return folder


def test_a_url_is_downloaded_once(web: Web) -> None:
    url = f"{web.address}/data.csv?version=1"
    for _ in range(2):
        dataset = file_dataset(url)
        assert [(sample.input, sample.target) for sample in dataset] == [("q", "a")]
        assert (dataset.name, dataset.location) == ("data", url)
    assert web.asked == ["/data.csv?version=1"]


def test_redirects_are_followed(web: Web) -> None:
    assert len(csv_dataset(f"{web.address}/moved.csv")) == 1


@pytest.mark.parametrize(("path", "says"), [("/none.csv", "answered 404"), ("/data.csv?cut", "can't be downloaded")])
def test_a_failed_download_is_told_and_leaves_nothing(web: Web, cache: Path, path: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        csv_dataset(web.address + path)
    assert [file for file in cache.rglob("*") if file.is_file()] == []


def test_a_server_that_is_not_there_is_told() -> None:
    with pytest.raises(UsageError, match="Check the address and the network"):
        csv_dataset("http://127.0.0.1:9/data.csv")

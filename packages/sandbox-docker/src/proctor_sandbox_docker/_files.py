"""Files of a container, by the engine's archives: no program of the container has a part in it.

An archive is made by the engine, as root of the container and outside of its mounts. So what the kernel alone can
judge goes another way, through a shell: files of a user who is not root, of ``/proc`` and other file systems that are
in memory only, and files that are there already, which keep their owner, their mode and their links.
"""

from __future__ import annotations

import base64
import io
import json
import posixpath
import stat
import tarfile
from dataclasses import dataclass
from typing import IO

from docker import APIClient
from docker.errors import APIError, create_api_error_from_http_exception
from requests import HTTPError, Response

from proctor.contracts import OutputLimitExceededError
from proctor.sandbox import MAX_READ_FILE

__all__ = ["PathStat", "put_file", "read_archive", "stat_path", "too_large"]

_GO_DIR, _GO_SYMLINK, _GO_SETUID, _GO_SETGID, _GO_STICKY = 1 << 31, 1 << 27, 1 << 23, 1 << 22, 1 << 20
_GO_KINDS = _GO_DIR | _GO_SYMLINK | 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19
_LINKS = 40


@dataclass(frozen=True, slots=True)
class PathStat:
    """What stands at a path.

    Args:
        size: bytes.
        mode: permissions, as in ``st_mode``.
        kind: ``file``, ``directory``, ``link`` or ``other`` (a device, a pipe).
        link: what a link leads to.
    """

    size: int
    mode: int
    kind: str
    link: str = ""

    @classmethod
    def of_header(cls, header: str) -> PathStat:
        """From the header ``X-Docker-Container-Path-Stat``, whose mode is Go's."""
        found = json.loads(base64.b64decode(header.replace("-", "+").replace("_", "/")))  # Podman: for addresses
        go = int(found["mode"])
        mode = go & 0o777
        for bit, ours in ((_GO_SETUID, stat.S_ISUID), (_GO_SETGID, stat.S_ISGID), (_GO_STICKY, stat.S_ISVTX)):
            mode |= ours if go & bit else 0
        kind = "file" if not go & _GO_KINDS else "other"
        kind = "directory" if go & _GO_DIR else "link" if go & _GO_SYMLINK else kind
        return cls(int(found["size"]), mode, kind, str(found.get("linkTarget") or ""))


def stat_path(client: APIClient, container: str, path: str) -> PathStat:
    """What stands at ``path``; blocks.

    Raises:
        FileNotFoundError: nothing.
        docker.errors.APIError: the engine refuses.
    """
    with _archive(client, "HEAD", container, path) as response:
        return _stat_of(response)


def read_archive(client: APIClient, container: str, path: str) -> bytes:
    """The contents of a file; links are followed; blocks.

    Raises:
        FileNotFoundError: there is no such file, as far as the engine can see.
        IsADirectoryError: it is a directory.
        OutputLimitExceededError: it is too large.
    """
    for _ in range(_LINKS):
        with _archive(client, "GET", container, path) as response:
            found = _stat_of(response)
            if found.kind != "link" or not found.link or found.link == path:
                return _member(path, found, response.raw)
            path = posixpath.join(posixpath.dirname(path), found.link)
    raise OSError(f"too many links: {path}")


def _archive(client: APIClient, method: str, container: str, path: str) -> Response:
    # The SDK has no HEAD, and reads the header in one of the two ways in which engines write it.
    url = f"{client.base_url}/v{client.api_version}/containers/{container}/archive"
    response: Response = client.request(
        method,
        url,
        params={"path": path},
        headers={"Accept-Encoding": "identity"},  # what goes through a socket of this machine is not worth packing
        stream=True,
        timeout=client.timeout,
    )
    if response.status_code == 404:
        response.close()
        raise FileNotFoundError(path)
    try:
        response.raise_for_status()
    except HTTPError as error:
        with response:
            raise create_api_error_from_http_exception(error) from error
    return response


def _stat_of(response: Response) -> PathStat:
    return PathStat.of_header(response.headers["X-Docker-Container-Path-Stat"])


def _member(path: str, found: PathStat, source: IO[bytes]) -> bytes:
    if found.kind == "directory":
        raise IsADirectoryError(path)
    if found.kind != "file":
        raise FileNotFoundError(path)
    if found.size > MAX_READ_FILE:
        raise too_large()
    with tarfile.open(fileobj=source, mode="r|", bufsize=1024 * 1024) as archive:
        member = archive.next()
        contents = archive.extractfile(member) if member is not None else None
        if contents is None:
            raise FileNotFoundError(path)
        data = contents.read(MAX_READ_FILE + 1)  # it may have grown meanwhile
    if len(data) > MAX_READ_FILE:
        raise too_large()
    return data


def too_large() -> OutputLimitExceededError:
    """The error of a file that is larger than may be read."""
    return OutputLimitExceededError("100 MiB", None)


def put_file(client: APIClient, container: str, path: str, data: bytes, mode: int = 0o644) -> None:
    """Write a file that is not there yet, with the directories above it; blocks.

    Raises:
        docker.errors.APIError: the engine refuses, as with a file system that is read-only.
    """
    head = io.BytesIO()
    with tarfile.open(fileobj=head, mode="w", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo(path.lstrip("/"))
        member.size, member.mode = len(data), mode
        archive.addfile(member, io.BytesIO(data))
    if not client.put_archive(container, "/", head.getvalue()):
        raise APIError(f"the engine did not take the file {path}")

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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from docker import APIClient
from docker.errors import APIError, NotFound

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
        found = json.loads(base64.b64decode(header))
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
    url = client._url("/containers/{0}/archive", container)
    response = client.head(url, params={"path": path}, timeout=client.timeout)
    if response.status_code == 404:
        raise FileNotFoundError(path)
    client._raise_for_status(response)
    return PathStat.of_header(response.headers["X-Docker-Container-Path-Stat"])


def read_archive(client: APIClient, container: str, path: str) -> bytes:
    """The contents of a file; links are followed; blocks.

    Raises:
        FileNotFoundError: there is no such file, as far as the engine can see.
        IsADirectoryError: it is a directory.
        OutputLimitExceededError: it is too large.
    """
    for _ in range(_LINKS):
        try:
            chunks, header = client.get_archive(container, path, chunk_size=1024 * 1024)
        except NotFound:
            raise FileNotFoundError(path) from None
        found = _stat_of(header)
        if found.kind == "link" and found.link and found.link != path:
            chunks.close()
            path = posixpath.join(posixpath.dirname(path), found.link)
            continue
        try:
            return _member(path, found, chunks)
        finally:
            chunks.close()
    raise OSError(f"too many links: {path}")


def _stat_of(header: dict[str, Any]) -> PathStat:
    return PathStat.of_header(base64.b64encode(json.dumps(header).encode()).decode())


def _member(path: str, found: PathStat, chunks: Iterator[bytes]) -> bytes:
    if found.kind == "directory":
        raise IsADirectoryError(path)
    if found.kind != "file":
        raise FileNotFoundError(path)
    if found.size > MAX_READ_FILE:
        raise too_large()
    with tarfile.open(fileobj=_Chunks(chunks), mode="r|", bufsize=1024 * 1024) as archive:
        member = archive.next()
        source = archive.extractfile(member) if member is not None else None
        if source is None:
            raise FileNotFoundError(path)
        data = source.read(MAX_READ_FILE + 1)  # it may have grown meanwhile
    if len(data) > MAX_READ_FILE:
        raise too_large()
    return data


def too_large() -> OutputLimitExceededError:
    """The error of a file that is larger than may be read."""
    return OutputLimitExceededError("100 MiB", None)


class _Chunks(io.RawIOBase):
    """What comes in pieces, as a file."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts, missing = [], size
        while missing > 0:
            if not self._rest:
                self._rest = next(self._chunks, b"")
                if not self._rest:
                    break
            part, self._rest = self._rest[:missing], self._rest[missing:]
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)


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

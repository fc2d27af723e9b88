"""What an image is built from: the files that are sent, and a name that only the same files get again."""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO

from docker.utils.build import create_archive, exclude_paths

from proctor.contracts import UsageError
from proctor_sandbox_docker.compose import BuildSpec, InterpolationError, interpolate

__all__ = ["BUILT", "BuildContext", "open_context"]

BUILT = "proctor-built"
"""The name of images that are built here; their tags are made of what they were built from."""

_OWN = ".proctor-dockerfile"
_FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?", re.IGNORECASE | re.MULTILINE)
_ARG = re.compile(r"^\s*ARG\s+(\w+)=(\S*)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class BuildContext:
    """The files of a build.

    Args:
        build: what is asked for.
        files: those that are sent, relative to the folder.
        dockerfile: the text of the Dockerfile.
        inside: the Dockerfile's path in what is sent.
        digest: of all of it.
    """

    build: BuildSpec
    files: tuple[str, ...]
    dockerfile: str
    inside: str
    digest: str

    def bases(self) -> list[str]:
        """The images that the Dockerfile starts from, as far as its text tells."""
        known = {**dict(_ARG.findall(self.dockerfile)), **self.build.args}
        stages, found = {"scratch"}, []
        for base, stage in _FROM.findall(self.dockerfile):
            try:
                name = interpolate(base.strip("'\""), known)
            except InterpolationError:
                continue
            if name not in stages:
                found.append(name)
            stages.add(stage)
        return found

    def tag(self, image_id: Callable[[str], str | None]) -> str:
        """The name of the image: of the files and of the images that it starts from, as they are now.

        Args:
            image_id: the id of an image that is there.
        """
        parts = [self.digest, *(f"{base}={image_id(base)}" for base in self.bases())]
        return f"{BUILT}:{blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()}"

    @contextmanager
    def archive(self) -> Iterator[IO[bytes]]:
        """The files as a tar archive."""
        extra = [(self.inside, self.dockerfile)] if self.inside == _OWN else None
        with tempfile.TemporaryFile() as file:
            create_archive(str(self.build.context), files=self.files, fileobj=file, extra_files=extra)
            yield file


def open_context(build: BuildSpec, platform: str | None = None) -> BuildContext:
    """Read the files of ``build``, but for those that its ``.dockerignore`` names; blocks.

    Args:
        build: what is asked for.
        platform: that the image is for.

    Raises:
        UsageError: a file can't be read.
    """
    try:
        text, inside = _dockerfile(build)
        patterns = _ignored(build)
        keep = None if inside == _OWN else inside
        names = exclude_paths(str(build.context), patterns, keep) if patterns else _all(build.context)
        files = tuple(sorted(name for name in names if _is_sent(build.context / name)))
        digest = _digest(build, files, text, platform)
    except OSError as error:
        raise UsageError(f"the image in {build.context} can't be built: {error}") from error
    return BuildContext(build, files, text, inside, digest)


def _dockerfile(build: BuildSpec) -> tuple[str, str]:
    """The text, and where it is in what is sent."""
    if build.dockerfile_inline is not None:
        return build.dockerfile_inline, _OWN
    path = build.context / build.dockerfile
    inside = os.path.relpath(path.resolve(), build.context.resolve())
    return path.read_text(encoding="utf-8", errors="replace"), _OWN if inside.startswith("..") else inside


def _ignored(build: BuildSpec) -> list[str]:
    """Patterns of the Dockerfile's own ignore file, else of the folder's."""
    for path in (build.context / f"{build.dockerfile}.dockerignore", build.context / ".dockerignore"):
        if path.is_file():
            lines = map(
                str.strip, path.read_text(encoding="utf-8", errors="replace").removeprefix("\ufeff").splitlines()
            )
            return [line for line in lines if line and not line.startswith("#")]
    return []


def _all(folder: Path) -> list[str]:
    found = []
    for parent, folders, files in os.walk(folder):
        found += [os.path.relpath(os.path.join(parent, name), folder) for name in (*folders, *files)]
    return found


def _is_sent(path: Path) -> bool:
    mode = path.lstat().st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def _digest(build: BuildSpec, files: tuple[str, ...], text: str, platform: str | None) -> str:
    digest = blake2b(digest_size=16)
    said = [text, sorted(build.args.items()), build.target, sorted(build.labels.items()), platform]
    digest.update(json.dumps(said).encode())
    for name in files:
        path = build.context / name
        mode = path.lstat().st_mode
        digest.update(json.dumps([name, stat.S_IFMT(mode), stat.S_IMODE(mode)]).encode(errors="surrogateescape"))
        if stat.S_ISLNK(mode):
            digest.update(os.fsencode(os.readlink(path)))
        elif stat.S_ISREG(mode):
            with path.open("rb") as file:
                for block in iter(lambda: file.read(1 << 20), b""):  # used at once
                    digest.update(block)
        digest.update(b"\0")
    return digest.hexdigest()

"""Where the engine listens: what the command line of Docker would take, and Podman's sockets after that."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from proctor.contracts import PrerequisiteError, UsageError

__all__ = ["Address", "find_address", "nobody_answers"]

_START = (
    "Start Docker (`sudo systemctl start docker`, or Docker Desktop), rootless Docker or Podman "
    "(`systemctl --user start podman.socket`), or set DOCKER_HOST to its address"
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where an engine listens.

    Args:
        url: ``unix:///path`` or ``tcp://host:port``.
        source: who said so, for messages.
        ca, cert, key: files for TLS; ``None`` without it.
        verify: whether the engine's certificate is checked.
        default: the command line of Docker finds it by itself.
    """

    url: str
    source: str
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    verify: bool = True
    default: bool = False

    @property
    def tls(self) -> bool:
        """Whether what is sent is encrypted."""
        return bool(self.ca or self.cert)

    @property
    def socket_path(self) -> str | None:
        """The file of a Unix socket."""
        return self.url.removeprefix("unix://") if self.url.startswith("unix://") else None

    @property
    def host_port(self) -> tuple[str, int]:
        """Of a TCP address."""
        parts = urlsplit(self.url)
        return parts.hostname or "127.0.0.1", parts.port or (2376 if self.tls else 2375)


def find_address(environ: Mapping[str, str] | None = None) -> Address:
    """The engine that ``DOCKER_HOST``, the current context of Docker, or a socket in a usual place names.

    Raises:
        PrerequisiteError: there is none.
        UsageError: its address is of a kind that can't be used.
    """
    env = os.environ if environ is None else environ
    if host := env.get("DOCKER_HOST"):
        folder = Path(env.get("DOCKER_CERT_PATH") or _docker_folder(env))
        verify = bool(env.get("DOCKER_TLS_VERIFY"))
        return _checked(host, "DOCKER_HOST", folder if verify or env.get("DOCKER_TLS") else None, verify)
    folder = _docker_folder(env)
    name = env.get("DOCKER_CONTEXT") or _read_json(folder / "config.json").get("currentContext")
    if name and name != "default":
        return _of_context(name, folder)
    tried = _usual_places(env)
    for path in tried:
        if _is_socket(path):
            return Address(f"unix://{path}", path, default=path == tried[0])
    raise PrerequisiteError(
        f"sandbox docker: no container engine was found: DOCKER_HOST is not set, and there is no socket at "
        f"{', '.join(tried)}. {_START}. `docker version` or `podman info` shows whether it answers"
    )


def nobody_answers(address: Address, why: object) -> UsageError:
    """The error of somebody who has an engine, which does not answer."""
    hint = ""
    if "ermission denied" in str(why):
        hint = " Your user may not use it: `sudo usermod -aG docker $USER` and a new login, or rootless Docker."
    return UsageError(
        f"sandbox docker: no engine answers at {address.url} (from {address.source}): {_short(why)}.{hint} {_START}. "
        "`docker version` shows whether it answers"
    )


def _short(why: object) -> str:
    text = str(why)
    while isinstance(why, BaseException) and (why.__cause__ or why.__context__):
        why = why.__cause__ or why.__context__
    return str(why) or text


def _checked(host: str, source: str, tls_folder: Path | None = None, verify: bool = True) -> Address:
    scheme, separator, rest = host.partition("://")
    if not separator:
        scheme, rest = ("unix", host) if host.startswith("/") else ("tcp", host)
    if scheme == "ssh":
        raise UsageError(
            f"{source}={host}: commands need a connection that can be closed on one side, which SSH addresses do not "
            f"give. Forward the socket: `ssh -nNT -L /tmp/docker.sock:/var/run/docker.sock {rest}`, and set "
            "DOCKER_HOST=unix:///tmp/docker.sock"
        )
    if scheme not in ("unix", "tcp", "http", "https"):
        raise UsageError(f"{source}={host}: an address is unix:///path/of/the.sock or tcp://host:port")
    if scheme == "unix":
        return Address(f"unix://{rest}", source)
    files: dict[str, str | None] = {"ca": None, "cert": None, "key": None}
    if tls_folder is not None:
        files = {name: _file(tls_folder / f"{name}.pem") for name in files}
        if not any(files.values()):
            raise UsageError(f"{source}={host}: TLS is asked for, but {tls_folder} has no ca.pem and cert.pem")
    return Address(f"tcp://{rest}", source, files["ca"], files["cert"], files["key"], verify)


def _file(path: Path) -> str | None:
    return str(path) if path.is_file() else None


def _docker_folder(env: Mapping[str, str]) -> Path:
    return Path(env.get("DOCKER_CONFIG") or Path.home() / ".docker")


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def _of_context(name: str, folder: Path) -> Address:
    """The address that `docker context create` wrote down."""
    place = hashlib.sha256(name.encode()).hexdigest()
    meta = _read_json(folder / "contexts" / "meta" / place / "meta.json")
    endpoint = meta.get("Endpoints", {}).get("docker", {})
    if not endpoint.get("Host"):
        raise UsageError(
            f"the context {name!r} of Docker is not there: `docker context ls` lists them, DOCKER_CONTEXT or "
            "`docker context use` names one"
        )
    tls = folder / "contexts" / "tls" / place / "docker"
    return _checked(
        endpoint["Host"], f"context {name}", tls if tls.is_dir() else None, not endpoint.get("SkipTLSVerify")
    )


def _usual_places(env: Mapping[str, str]) -> list[str]:
    runtime = env.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    return [
        "/var/run/docker.sock",
        f"{runtime}/docker.sock",
        str(Path.home() / ".docker/run/docker.sock"),
        f"{runtime}/podman/podman.sock",
        "/run/podman/podman.sock",
    ]


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False

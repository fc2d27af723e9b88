"""What a task writes after ``docker:``, as what a sample gets: an image, settings, a Dockerfile, a compose file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from proctor.contracts import UsageError
from proctor_sandbox_docker.compose import (
    ALLOW,
    Given,
    Lookup,
    ProjectSpec,
    ServiceSpec,
    allowed_risks,
    read_compose,
    read_compose_file,
    read_settings,
)

__all__ = [
    "COMPOSE_FILES", "CONFIG_FILES", "DEFAULT_IMAGE", "METADATA", "asks_for_metadata", "compose_file",
    "metadata_variables", "read",
]  # fmt: skip

DEFAULT_IMAGE = "python:3.12-bookworm"
"""What runs when nothing is said (``PROCTOR_DOCKER_IMAGE`` names another)."""

COMPOSE_FILES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
CONFIG_FILES = (*COMPOSE_FILES, "Dockerfile")
"""Files that are picked up beside a task file, in this order."""

METADATA = "SAMPLE_METADATA_"
"""What the names of variables start with that stand for a sample's metadata."""

_SETTING = re.compile(r"[a-z_]+=")
_ALIASES = {
    "memory": "mem_limit",
    "network": "network_mode",
    "pids": "pids_limit",
    "workdir": "working_dir",
}
_SOURCES = ("image", "dockerfile", "compose")
_SETTINGS = (
    "build", "cap_add", "cap_drop", "command", "cpus", "dns", "entrypoint", "environment", "extra_hosts", "gpus",
    "group_add", "hostname", "image", "init", "mem_limit", "network_mode", "pids_limit", "platform", "ports",
    "read_only", "runtime", "security_opt", "shm_size", "sysctls", "tmpfs", "ulimits", "user", "volumes", "working_dir",
)  # fmt: skip


def read(config: Any, metadata: Mapping[str, Any] | None, lookup: Lookup = os.environ.get) -> ProjectSpec:
    """What ``config`` asks for.

    Args:
        config: ``None``; the name of an image; the path of a compose file, of a Dockerfile or of a folder with one;
            ``key=value,...``; or a dict, either a compose file's or one of settings.
        metadata: of the sample; ``None`` = of no sample: what hangs on metadata is left out, all else is checked.
        lookup: the value of a variable of the run (``None``: not set); of this process by default.

    Raises:
        UnsupportedKeyError: a compose file has a key that is not understood here.
        UsageError: anything else is wrong with it.
    """
    own = metadata_variables(metadata or {})
    given = Given(
        lambda name: own[name] if name in own else lookup(name),
        METADATA if metadata is None else None,
        allowed_risks(lookup(ALLOW) or ""),
    )
    reader = _Reader(given, lookup("PROCTOR_DOCKER_IMAGE") or DEFAULT_IMAGE)
    if config is None:
        return reader.settings({})
    if isinstance(config, str):
        return reader.text(config)
    if hasattr(config, "model_dump"):  # a record that stands for a compose file
        config = config.model_dump(mode="json", by_alias=True, exclude_none=True)
    if not isinstance(config, Mapping):
        raise UsageError(f"sandbox docker: the configuration must be a text or a dict, not {type(config).__name__}")
    if "services" in config:
        return read_compose(config, Path.cwd(), reader.given)
    return reader.settings(config)


def asks_for_metadata(config: Any) -> bool:
    """Whether what samples get hangs on their metadata, also where a default stands for what a sample lacks.

    Raises:
        UsageError: as ``read``.
    """
    asked: list[str] = []

    def lookup(name: str) -> str | None:
        asked.append(name)
        return os.environ.get(name)

    read(config, None, lookup)
    return any(name.startswith(METADATA) for name in asked)


def compose_file(config: Any) -> Path | None:
    """The compose file that ``config`` names, alone; ``None`` if it is anything else."""
    if not isinstance(config, str) or not config or "\n" in config:
        return None
    path = _in_folder(Path(config).expanduser())
    return path if path.is_file() and not _is_dockerfile(path) else None


def metadata_variables(metadata: Mapping[str, Any]) -> dict[str, str]:
    """A sample's metadata as variables: ``level of care`` becomes ``SAMPLE_METADATA_LEVEL_OF_CARE``."""
    return {METADATA + str(key).replace(" ", "_").upper(): str(value) for key, value in metadata.items()}


@dataclass(frozen=True)
class _Reader:
    given: Given
    default_image: str

    def text(self, config: str) -> ProjectSpec:
        if not config.strip():
            raise UsageError(
                "sandbox docker: nothing is named: an image, a compose file, a Dockerfile or key=value settings"
            )
        if _SETTING.match(config):
            return self.settings(_pairs(config))
        path = _in_folder(Path(config).expanduser())
        if _is_file(path):
            return self.file(path)
        if _is_folder(config):
            raise UsageError(f"sandbox docker: {config} is a folder without {', '.join(CONFIG_FILES)}")
        if _looks_like_file(config):
            raise UsageError(f"sandbox docker: there is no file {path.absolute()}")
        return self.settings({"image": config})

    def file(self, path: Path) -> ProjectSpec:
        if _is_dockerfile(path):
            return self.settings({"dockerfile": str(path)})
        return read_compose_file(path, self.given)

    def settings(self, said: Mapping[str, Any]) -> ProjectSpec:
        """One container by settings, or a compose file whose default service they change."""
        fields = read_settings("docker", _as_service(said), Path.cwd(), self.given, _SETTINGS)
        if "compose" in said:
            project = read_compose_file(Path(str(said["compose"])).expanduser(), self.given)
            return _changed(project, fields)
        if not {"image", "dockerfile", "build"} & said.keys():
            fields["image"] = self.default_image
        fields.setdefault("network_mode", "none")
        fields.setdefault("init", True)
        if "command" not in fields and "entrypoint" not in fields:
            fields["keep_alive"] = True
        return ProjectSpec((ServiceSpec(name="default", **fields),), "default")


def _pairs(config: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in config.split(","):
        key, equals, value = part.partition("=")
        if not equals:
            raise UsageError(
                f"sandbox docker: {part!r} in {config!r} is not of the form key=value, "
                "such as image=python:3.12,memory=1g"
            )
        if key in found:
            raise UsageError(f"sandbox docker: {key} stands twice in {config!r}")
        found[key] = value
    return found


def _as_service(said: Mapping[str, Any]) -> dict[str, Any]:
    """Settings under the names of compose files."""
    sources = [name for name in (*_SOURCES, "build") if name in said]
    if len(sources) > 1 and sources != ["image", "build"]:  # an image that is built may have a name
        raise UsageError(f"sandbox docker: {' and '.join(sources)} both say what to run: name one of them")
    service = {_ALIASES.get(key, key): value for key, value in said.items() if key not in ("dockerfile", "compose")}
    if unknown := [key for key in service if key not in _SETTINGS]:
        known = sorted({*_SETTINGS, *_ALIASES, *_SOURCES} - set(_ALIASES.values()))
        raise UsageError(f"sandbox docker: there is no setting {unknown[0]!r}; there are {', '.join(known)}")
    if "dockerfile" in said:
        path = Path(os.path.abspath(Path(str(said["dockerfile"])).expanduser()))
        service["build"] = {"context": str(path.parent), "dockerfile": path.name}
    return service


def _changed(project: ProjectSpec, fields: Mapping[str, Any]) -> ProjectSpec:
    """``project`` with ``fields`` for its default service; a mode of the network goes before its networks."""
    more: dict[str, Any] = {"networks": {}, "addresses": {}} if "network_mode" in fields else {}
    services = [
        replace(service, **fields, **more) if service.name == project.default else service
        for service in project.services
    ]
    used = {name for service in services for name in service.networks}
    networks = {name: spec for name, spec in project.networks.items() if name in used}
    return replace(project, services=tuple(services), networks=networks)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_folder(config: str) -> bool:
    try:
        return Path(config).expanduser().is_dir()
    except (OSError, ValueError):
        return False


def _in_folder(path: Path) -> Path:
    """The configuration in a folder, or ``path`` itself."""
    try:
        if path.is_dir():
            return next((path / name for name in CONFIG_FILES if (path / name).is_file()), path / CONFIG_FILES[0])
    except (OSError, ValueError):  # a text that can't be a path
        pass
    return path


def _is_dockerfile(path: Path) -> bool:
    name = path.name.lower()
    return name == "dockerfile" or name.startswith("dockerfile.") or name.endswith(".dockerfile")


def _looks_like_file(config: str) -> bool:
    return config.lower().endswith((".yaml", ".yml", ".json")) or _is_dockerfile(Path(config)) or config[:1] in "./~"

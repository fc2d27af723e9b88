"""A configuration as it was given (an image, settings, a values file, a mapping) as one tree that knows its lines."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proctor.contracts import UsageError

__all__ = ["Tree", "read_source"]

_SETTING = re.compile(r"[A-Za-z]\w*=")
_ENDINGS = (".yaml", ".yml", ".json")
_SETTINGS = (
    "image",
    "context",
    "namespace",
    "cpu",
    "memory",
    "workingDir",
    "serviceAccount",
    "runtimeClassName",
    "priorityClassName",
    "imagePullPolicy",
    "network",
    "startTimeout",
    "activeDeadlineSeconds",
)
"""What fits into ``k8s:name=value,...``; all else needs a values file."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A configuration.

    Args:
        values: as YAML reads it.
        source: what it came from, for messages.
        lines: of a file, by the path of a key (``services.web.image``).
    """

    values: Mapping[str, Any]
    source: str
    lines: Mapping[str, int] = field(default_factory=dict)

    def error(self, path: str, said: str) -> UsageError:
        """What is wrong at a key, with its place."""
        line = self.lines.get(path)
        where = self.source if line is None else f"{self.source}, line {line}"
        return UsageError(f"{where}: {path}: {said}" if path else f"{where}: {said}")


def read_source(config: Any) -> Tree:
    """Read what a task, a sample or ``--sandbox k8s:...`` gave.

    Raises:
        UsageError: if there is nothing, or nothing that can be read.
    """
    if config is None or config == "":
        raise UsageError(
            "sandbox 'k8s': no image was named: --sandbox k8s:python:3.12, or a file k8s.yaml beside the task "
            "that says `image: ...`"
        )
    if isinstance(config, Mapping):
        return Tree(dict(config), "sandbox 'k8s'")
    if not isinstance(config, str | os.PathLike):
        raise UsageError(f"sandbox 'k8s': an image, settings, a values file or a mapping, not {config!r}")
    text = os.fspath(config)
    if text.lower().endswith(_ENDINGS):
        return _read_file(text)
    if _SETTING.match(text):
        return Tree(_settings(text), f"--sandbox k8s:{text}")
    if any(character.isspace() for character in text):
        raise UsageError(f"sandbox 'k8s': {text!r} is neither an image nor settings such as image=python:3.12")
    return Tree({"image": text}, f"--sandbox k8s:{text}")


def _settings(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or name not in _SETTINGS:
            raise UsageError(
                f"--sandbox k8s:{text}: {part!r}: the settings are {', '.join(f'{each}=' for each in _SETTINGS)}; "
                "everything else goes into a values file, such as k8s:k8s.yaml"
            )
        if name in found:
            raise UsageError(f"--sandbox k8s:{text}: {name} is there twice")
        found[name] = value
    return found


def _read_file(path: str) -> Tree:
    import yaml

    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"sandbox 'k8s': {path} can't be read: {getattr(error, 'strerror', None) or error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f", line {mark.line + 1}"
        raise UsageError(f"{path}{where}: no YAML: {getattr(error, 'problem', None) or error}") from None
    if not isinstance(values, dict):
        raise UsageError(f"{path}: a mapping was expected, with at least `image: ...`")
    lines: dict[str, int] = {}
    _note_lines(root, "", lines, path)
    return Tree(values, path, lines)


def _note_lines(node: Any, path: str, lines: dict[str, int], source: str) -> None:
    """The line of each key; a key that is there twice is an error, since YAML silently takes the last."""
    pairs = getattr(node, "value", None)
    if not isinstance(pairs, list) or not type(node).__name__.startswith("Mapping"):
        return
    for key, value in pairs:
        name = str(key.value)
        full = f"{path}.{name}" if path else name
        if full in lines and name != "<<":
            raise UsageError(
                f"{source}, line {key.start_mark.line + 1}: {full} is there twice (see line {lines[full]})"
            )
        lines[full] = key.start_mark.line + 1
        _note_lines(value, full, lines, source)

"""What a sample says in its configuration: ``${SAMPLE_METADATA_NAME}`` is the sample's own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from proctor_sandbox_k8s._source import Tree

__all__ = ["names_metadata", "with_metadata"]

_PREFIX = "SAMPLE_METADATA_"
# Only these: commands and variables of a pod are full of other $NAMES, which are the shell's in it.
_NAMED = re.compile(
    rf"(?P<escaped>\$)?\$(?:\{{{_PREFIX}(?P<braced>\w+)(?P<operator>:?[-?])?(?P<word>[^}}]*)\}}|{_PREFIX}(?P<plain>\w+))"
)


def names_metadata(value: Any) -> bool:
    """Whether something in a configuration is a sample's own."""
    if isinstance(value, str):
        return _PREFIX in value
    if isinstance(value, Mapping):
        return any(names_metadata(each) for pair in value.items() for each in pair)
    return isinstance(value, list | tuple) and any(map(names_metadata, value))


def with_metadata(tree: Tree, metadata: Mapping[str, Any]) -> Tree:
    """The configuration of one sample.

    ``${SAMPLE_METADATA_NAME:-otherwise}`` and ``-``, ``:?`` and ``?`` mean what they do in a shell; ``$$`` before the
    name leaves it as it is.

    Raises:
        UsageError: if the sample has nothing of that name.
    """
    if not names_metadata(tree.values):
        return tree
    known = {_variable(name): _text(value) for name, value in metadata.items()}

    def put(value: Any, path: str) -> Any:
        if isinstance(value, str):
            return _NAMED.sub(lambda found: _one(found, known, tree, path), value)
        if isinstance(value, Mapping):
            return {name: put(each, f"{path}.{name}" if path else str(name)) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [put(each, path) for each in value]
        return value

    return Tree(put(tree.values, ""), tree.source, tree.lines)


def _one(found: re.Match[str], known: Mapping[str, str], tree: Tree, path: str) -> str:
    if found["escaped"]:
        return found[0][1:]
    name = found["braced"] or found["plain"]
    operator, word = found["operator"] or "", found["word"] or ""
    value = known.get(name)
    if value is None or (value == "" and operator.startswith(":")):
        if operator.endswith("-"):
            return word
        if operator.endswith("?") or value is None:
            there = ", ".join(f"{_PREFIX}{each}" for each in sorted(known)) or "none"
            raise tree.error(path, word or f"the sample has no metadata for {_PREFIX}{name}; it has {there}")
    return value


def _variable(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII).upper()


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)

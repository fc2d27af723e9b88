"""A compose file as a tree whose every value knows where it stands, so that an error can name the key and the line."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import yaml

from proctor.contracts import UsageError
from proctor_sandbox_docker.compose._interpolate import InterpolationError, Lookup, MissingVariableError, interpolate
from proctor_sandbox_docker.compose._values import read_bytes, read_command, read_seconds, shown_number

__all__ = ["Document", "Given", "Node", "UnsupportedKeyError", "parse"]

T = TypeVar("T")
Place: TypeAlias = tuple[str | int, ...]

_NUMBER = re.compile(r"[-+]?(\d[\d_]*\.?\d*|\.\d+)([eE][-+]?\d+)?")
_TRUE, _FALSE = {"true", "yes", "on", "y", "1"}, {"false", "no", "off", "n", "0"}
_DEEPEST = 50
_HINTS = {
    True: "the sample's metadata has no such entry; write ${NAME-default} for samples without one",
    False: "set it, give it a default (${NAME:-default}), or write `$$` for a `$` that is meant as one",
}


class UnsupportedKeyError(UsageError):
    """A key of a compose file that is not understood here; ``docker compose`` itself may know it."""


@dataclass(frozen=True)
class Given:
    """What is known while a file is read.

    Args:
        lookup: the value of a variable (``None``: not set).
        later: variables whose names start so, and that are not set, will be known of a sample: what needs one of them
            is left out. ``None`` = all is known now.
        allowed: names of dangerous things that are allowed all the same.
        lenient: pass over what is not understood: somebody else runs it, and understands it.
    """

    lookup: Lookup
    later: str | None = None
    allowed: Collection[str] = ()
    lenient: bool = False


@dataclass(frozen=True)
class Document:
    """What all values of one file share.

    Args:
        name: of the file, as errors show it.
        folder: relative paths in it start there.
        given: what is known while it is read.
        lines: place of a value -> line, from 1.
    """

    name: str
    folder: Path
    given: Given
    lines: Mapping[Place, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Node:
    """One value of a document, and where it stands.

    All methods raise ``UsageError`` naming the file, the line and the key when the value is not of their kind.
    """

    value: Any
    document: Document
    place: Place = ()

    def error(self, text: str, kind: type[UsageError] = UsageError) -> UsageError:
        """The error that says ``text`` of this value."""
        line = self.line
        where = self.document.name if line is None else f"{self.document.name}:{line}"
        return kind(f"{where}: {self.key}: {text}" if self.place else f"{where}: {text}")

    def unsupported(self, text: str) -> None:
        """Say that this is not understood, unless that is for somebody else to do.

        Raises:
            UnsupportedKeyError: the document is not read leniently.
        """
        if not self.document.given.lenient:
            raise self.error(text, UnsupportedKeyError)

    @property
    def line(self) -> int | None:
        """Where it stands, or the nearest thing around it that has a line."""
        for end in range(len(self.place), -1, -1):
            if (line := self.document.lines.get(self.place[:end])) is not None:
                return line
        return None

    @property
    def key(self) -> str:
        """The keys that lead to it: ``services.web.ports[0]``."""
        text = ""
        for part in self.place:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return text

    @property
    def absent(self) -> bool:
        """Whether there is nothing: a key without a value means as much as no key."""
        return self.value is None

    @property
    def later(self) -> bool:
        """Whether the value is a text that hangs on a sample's metadata, while no sample is at hand."""
        if not isinstance(self.value, str) or self.document.given.later is None:
            return False
        try:
            interpolate(self.value, self.document.given.lookup)
        except MissingVariableError as error:
            return error.name.startswith(self.document.given.later)
        except InterpolationError:
            pass  # said where the value is read
        return False

    def items(self) -> Iterator[tuple[str, Node]]:
        """The entries of a mapping (none for an absent value)."""
        if self.absent:
            return
        if not isinstance(self.value, Mapping):
            raise self.error(f"must be a mapping (name: value), not {_kind(self.value)}")
        for key, value in self.value.items():
            yield str(key), Node(value, self.document, (*self.place, str(key)))

    def entries(self) -> Iterator[tuple[str, Node]]:
        """The entries of a mapping whose values are known by now."""
        return ((key, node) for key, node in self.items() if not node.later)

    def get(self, key: str) -> Node:
        """The entry ``key`` of a mapping; an absent value if there is none."""
        if not (self.absent or isinstance(self.value, Mapping)):
            raise self.error(f"must be a mapping (name: value), not {_kind(self.value)}")
        return Node((self.value or {}).get(key), self.document, (*self.place, key))

    def known(self, keys: Collection[str], ignored: Collection[str] = ()) -> Iterator[tuple[str, Node]]:
        """The entries whose keys are in ``keys`` and whose values are known; what starts with ``x-`` is passed over.

        Raises:
            UnsupportedKeyError: there is another one.
        """
        for key, node in self.items():
            if key in keys:
                if not (node.absent or node.later):
                    yield key, node
            elif not key.startswith("x-") and key not in ignored:
                near = get_close_matches(key, keys, 1)
                known = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(keys))}"
                node.unsupported(f"this key is not supported here; {known}")

    def each(self) -> Iterator[Node]:
        """The items of a list (none for an absent value), or a single text as a list of itself."""
        if self.absent:
            return
        values = [self.value] if isinstance(self.value, str) else self.value
        if not isinstance(values, Sequence):
            raise self.error(f"must be a list, not {_kind(self.value)}")
        for index, value in enumerate(values):
            place = self.place if isinstance(self.value, str) else (*self.place, index)
            node = Node(value, self.document, place)
            if not node.later:
                yield node

    def is_mapping(self) -> bool:
        """Whether it is a mapping."""
        return isinstance(self.value, Mapping)

    def is_text(self) -> bool:
        """Whether it is a text."""
        return isinstance(self.value, str)

    def text(self) -> str:
        """A scalar as text, its variables filled in."""
        value = self._filled()
        if isinstance(value, (Mapping, list, tuple)) or value is None:
            raise self.error(f"must be a text, not {_kind(value)}")
        return shown_number(value)

    def texts(self) -> list[str]:
        """A list of texts."""
        return [node.text() for node in self.each()]

    def number(self) -> float:
        """A number, or a text that is one."""
        value = self._filled()
        if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
            return float(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.error(f"must be a number, not {_kind(value)}")
        return value

    def whole(self) -> int:
        """A whole number."""
        number = self.number()
        if not float(number).is_integer():
            raise self.error(f"must be a whole number, not {number:g}")
        return int(number)

    def flag(self) -> bool:
        """True or false, or a text that says so."""
        value = self._filled()
        if isinstance(value, bool):
            return value
        text = str(value).lower()
        if text not in _TRUE | _FALSE:
            raise self.error(f"must be true or false, not {_kind(value)}")
        return text in _TRUE

    def size(self) -> int:
        """A size in bytes."""
        return self._read(read_bytes)

    def seconds(self) -> float:
        """A duration in seconds."""
        return self._read(read_seconds)

    def command(self) -> list[str]:
        """A command: a list of arguments, or a line that is split as a shell would."""
        return self._read(read_command) if self.is_text() else self.texts()

    def _read(self, reader: Callable[[Any], T]) -> T:
        value = self._filled()
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise self.error(f"must be a text or a number, not {_kind(value)}")
        try:
            return reader(value)
        except ValueError as error:
            raise self.error(str(error)) from None

    def _filled(self) -> Any:
        if not isinstance(self.value, str) or "$" not in self.value:
            return self.value
        try:
            return interpolate(self.value, self.document.given.lookup)
        except MissingVariableError as error:
            raise self.error(f"{error}; {_HINTS[error.name.startswith('SAMPLE_METADATA_')]}") from None
        except InterpolationError as error:
            raise self.error(str(error)) from None


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, (Mapping, list, tuple)):
        return "a mapping" if isinstance(value, Mapping) else "a list"
    return repr(value)


def parse(text: str, name: str) -> tuple[Any, dict[Place, int]]:
    """YAML as plain values, and the line of each.

    Unlike YAML 1.1, ``yes`` and ``on`` are texts and ``22:22`` is no number, as for ``docker compose``.

    Raises:
        UsageError: it is no YAML, or a key stands twice in a mapping.
    """
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        builder = _Builder(loader, name)
        return (None if root is None else builder.build(root, ())), builder.lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(part for part in (error.context, error.problem) if part)
        raise UsageError(f"{name}:{mark.line + 1 if mark else 1}: this is no YAML: {said}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{name}: this is no YAML: {error}") from None
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """A loader with the scalars of YAML 1.2's core schema."""

    yaml_implicit_resolvers: Any = {}  # noqa: RUF012  # the base class declares it so


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F]+|0o?[0-7]+)", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), list(_first))


def _whole(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = node.value.replace("_", "")
    return int(re.sub(r"^([-+]?)0o?(?=[0-7])", r"\g<1>0o", text), 0)


_Loader.add_constructor("tag:yaml.org,2002:int", _whole)


class _Builder:
    def __init__(self, loader: _Loader, name: str) -> None:
        self.loader, self.name = loader, name
        self.lines: dict[Place, int] = {}
        self.merged: set[int] = set()
        """Mappings whose `<<` is resolved; one with an anchor is built once for each alias."""

    def build(self, node: yaml.Node, place: Place) -> Any:
        self.lines.setdefault(place, node.start_mark.line + 1)
        if len(place) > _DEEPEST:  # an alias that contains itself, too
            raise self._error(node, "values are nested too deeply")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*place, index)) for index, item in enumerate(node.value)]
        try:
            return self.loader.construct_object(node)
        except ValueError as error:
            raise self._error(node, str(error)) from None

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        if id(node) not in self.merged:
            self.merged.add(id(node))
            self._check_keys(node)
            self.loader.flatten_mapping(node)
        found = {}
        for key, value in node.value:  # what `<<` brings comes first, so that a mapping's own keys go over it
            self.lines[(*place, key.value)] = key.start_mark.line + 1
            found[key.value] = self.build(value, (*place, key.value))
        return found

    def _check_keys(self, node: yaml.MappingNode) -> None:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, "a key must be a text")
            if key.value in seen and key.value != "<<":
                raise self._error(key, f"the key {key.value!r} stands twice in one mapping")
            seen.add(key.value)

    def _error(self, node: yaml.Node, text: str) -> UsageError:
        return UsageError(f"{self.name}:{node.start_mark.line + 1}: {text}")

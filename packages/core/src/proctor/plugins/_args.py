"""Typed arguments of a component: what ``-M name=value`` means, by the dataclass that its record declares."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from typing import Any, Protocol, get_type_hints

from proctor.contracts import UsageError
from proctor.plugins._convert import convert, spell, split_commas
from proctor.plugins._kinds import suggestion
from proctor.schema import REMOVED, is_secret, redact, redact_text

_SECTION = re.compile(r"^(?:Attributes|Args):\n(.*)", re.MULTILINE | re.DOTALL)
_ATTRIBUTE = re.compile(r"^    (\w+): (.+(?:\n {5,}\S.*)*)", re.MULTILINE)


class HasArgs(Protocol):
    """A record that may declare arguments."""

    @property
    def name(self) -> str:
        """The component's name."""

    @property
    def args(self) -> type | None:
        """A dataclass, or ``None`` when it takes no arguments."""


@dataclasses.dataclass(frozen=True, slots=True)
class ArgInfo:
    """One argument of a component: its name, its type and default as text, and what it is for.

    The last is the ``help`` in the field's metadata, or what the docstring says under ``Attributes:`` or ``Args:``.
    """

    name: str
    type: str
    default: str | None
    help: str


def build_args(record: HasArgs, given: Mapping[str, Any], *, flag: str = "-M") -> Any:
    """Make an instance of ``record.args`` from what was given; ``None`` if the record declares no arguments.

    Args:
        record: a record whose ``args`` is a dataclass or ``None``.
        given: values by name; text, as it comes from a command line, is converted to the type of the field.
        flag: the option the values came from, for messages.

    Raises:
        UsageError: for an unknown name, a value of the wrong type, or a missing value.
    """
    if record.args is None:
        if given:
            raise UsageError(f"{flag} {next(iter(given))}=...: {record.name!r} takes no arguments.")
        return None
    fields = {field.name: field for field in dataclasses.fields(record.args) if field.init}
    hints = get_type_hints(record.args, include_extras=True)
    values: dict[str, Any] = {}
    for key, value in given.items():
        name = key.replace("-", "_")
        if name not in fields:
            hint = suggestion(name, list(fields)) or " It takes none."
            known = f" Known: {', '.join(fields)}." if "Did you mean" in hint else ""
            raise UsageError(f"{flag} {key}=...: {record.name!r} has no argument {key!r}.{hint}{known}")
        try:
            values[name] = convert(value, hints[name])
        except ValueError as error:
            seen = "the value given" if is_secret(name) else repr(redact(value))
            raise UsageError(f"{flag} {key}=...: {key} of {record.name!r} must be {error}, not {seen}.") from None
    missing = [name for name, field in fields.items() if name not in values and not _has_default(field)]
    if missing:
        raise UsageError(f"{record.name!r} needs {', '.join(missing)}: give it with {flag} {missing[0]}=...")
    try:
        return record.args(**values)
    except (TypeError, ValueError) as error:  # what the dataclass's own __post_init__ refuses
        said = _without_values(str(error), given)
        raise UsageError(f"{flag}: {record.name!r} does not accept its arguments: {said}") from error


def describe_args(record: HasArgs) -> list[ArgInfo]:
    """The arguments that ``record`` declares, in their order."""
    if record.args is None:
        return []
    hints, texts = get_type_hints(record.args), _attribute_texts(record.args)
    return [
        ArgInfo(
            field.name,
            spell(hints[field.name]),
            _default(field),
            str(field.metadata.get("help", texts.get(field.name, ""))),
        )
        for field in dataclasses.fields(record.args)
        if field.init
    ]


def component_spec(text: str) -> tuple[str, dict[str, str]]:
    """Split ``name:k=v,k=v`` as given to ``--observer`` and ``--display``; commas in brackets or quotes stay.

    Raises:
        UsageError: if a part has no ``=``.
    """
    name, _, rest = text.partition(":")
    options: dict[str, str] = {}
    for part in split_commas(rest):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            # What stands after a comma may be the rest of a password that has one.
            seen = "what stands after a comma" if any(map(is_secret, options)) else repr(part)
            raise UsageError(f"{name}: {seen} is no option. Write {name}:name=value,name=value.")
        options[key.strip()] = value.strip()
    return name.strip(), options


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> str | None:
    if not _has_default(field):
        return None
    # A factory may read a key from the environment.
    value = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
    return redact_text(repr(redact({field.name: value})[field.name]))


def _without_values(text: str, given: Mapping[str, Any]) -> str:
    """``text`` without the secrets among the values that were given."""
    for name, value in given.items():
        if is_secret(name) and isinstance(value, str) and len(value) > 3:
            text = text.replace(value, REMOVED)
    return text


def _attribute_texts(cls: type) -> dict[str, str]:
    """What the docstrings of a dataclass and its bases say about its fields, one line each."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        section = _SECTION.search(inspect.cleandoc(base.__doc__ or ""))
        for match in _ATTRIBUTE.finditer(section[1] if section else ""):
            texts[match[1]] = " ".join(match[2].split())
    return texts

"""From a record of a file to a sample."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from pydantic import BaseModel, TypeAdapter, ValidationError

from proctor.contracts import UsageError
from proctor.schema import ChatMessage, Sample, SandboxSpec

Record: TypeAlias = dict[str, Any]
RecordToSample: TypeAlias = Callable[[Record], Sample | Iterable[Sample]]

_messages: TypeAdapter[list[ChatMessage]] | None = None


@dataclass
class FieldSpec:
    """Which field of a record is what.

    ``target=None`` says that the samples have none, as when a model grades them.

    ``metadata`` is a list of fields to copy, or a frozen pydantic model whose fields are taken (from the record's
    ``metadata`` object if it has one, else from the record) and validated. Without it, a field named ``metadata`` that
    holds an object is the metadata.
    """

    input: str = "input"
    target: str | None = "target"
    choices: str = "choices"
    id: str = "id"
    metadata: list[str] | type[BaseModel] | None = None
    sandbox: str = "sandbox"
    files: str = "files"
    setup: str = "setup"

    def __post_init__(self) -> None:
        model = self.metadata
        if isinstance(model, type) and not model.model_config.get("frozen", False):
            raise UsageError(
                f"the metadata model {model.__name__} must be frozen, since what it makes is a view of the metadata: "
                f"write `class {model.__name__}(BaseModel, frozen=True)`"
            )

    def named_fields(self) -> list[str]:
        """The fields that the author named (those that differ from the defaults, and the metadata fields)."""
        defaults = {field.name: field.default for field in fields(FieldSpec)}
        named = [
            value
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), str) and value != defaults[field.name]
        ]
        return named + (self.metadata if isinstance(self.metadata, list) else [])


def missing_field(name: str, known: Iterable[str]) -> str:
    """The sentence that says which field is missing, the close match, and what there is."""
    names = [str(one) for one in known]
    lowered = {one.strip().lower(): one for one in names}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.7)
    hint = f" Did you mean {lowered[close[0]]!r}?" if close else ""
    return f"there is no field {name!r}.{hint} Fields: {', '.join(map(repr, names)) or 'none'}."


def close_match(name: str, known: Iterable[str]) -> str | None:
    """The field that ``name`` was probably meant to be: the same word in another case, in the plural, or misspelt."""
    lowered = {str(one).strip().lower(): str(one) for one in known}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.9)
    return lowered[close[0]] if close else None


def record_to_sample(record: Record, spec: FieldSpec) -> Sample:
    """The sample that a record describes.

    Raises:
        ValueError: if the input is missing, or a field has a value it can't have; the caller adds file and line.
    """
    return Sample(
        input=_read_input(record, spec.input),
        target="" if spec.target is None else _read_target(record.get(spec.target)),
        choices=_read_choices(record.get(spec.choices)),
        id=_read_id(record.get(spec.id), spec.id),
        metadata=_read_metadata(record, spec.metadata),
        sandbox=_read_sandbox(record.get(spec.sandbox), spec.sandbox),
        files=_read_files(record.get(spec.files), spec.files),
        setup=None if _missing(setup := record.get(spec.setup)) else str(setup),
    )


def _missing(value: Any) -> bool:
    # An empty cell and pandas' NaN both mean: no value.
    return value is None or (isinstance(value, str) and not value) or (isinstance(value, float) and math.isnan(value))


def _read_input(record: Record, field: str) -> str | list[ChatMessage]:
    value = record.get(field)
    if field not in record:
        raise ValueError(f"{missing_field(field, record)} Name the field of the prompt: FieldSpec(input=...).")
    if _missing(value) or value == []:
        raise ValueError(f"the input (field {field!r}) is empty")
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return _read_messages(value, field)
    raise ValueError(f"the input (field {field!r}) must be text or a list of messages, not {_shown(value)}")


def _read_messages(value: list[Any], field: str) -> list[ChatMessage]:
    global _messages
    for number, message in enumerate(value, 1):
        if not isinstance(message, dict) or "role" not in message or "content" not in message:
            raise ValueError(
                f"message {number} of the input (field {field!r}) must be an object with role and content, "
                f"not {_shown(message)}"
            )
        if message["role"] not in ("system", "user", "assistant", "tool"):
            raise ValueError(
                f"message {number} of the input (field {field!r}) has the role {message['role']!r}; "
                f"roles are system, user, assistant, tool"
            )
    _messages = _messages or TypeAdapter(list[ChatMessage])
    messages = _messages.validate_python(value)
    for message in messages:
        message.source = "input"
    return messages


def _read_target(value: Any) -> str | list[str]:
    if _missing(value):
        return ""
    return [str(item) for item in value] if isinstance(value, list) else str(value)


def _read_choices(value: Any) -> list[str] | None:
    if _missing(value):
        return None
    if isinstance(value, str):
        if value.lstrip().startswith("["):
            parsed = _parse_json(value)
            if isinstance(parsed, list):
                return [str(item) for item in parsed]
        return [choice.strip() for choice in value.split(",")]
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def _read_id(value: Any, field: str) -> int | str | None:
    if _missing(value):
        return None
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise ValueError(f"the id (field {field!r}) must be text or an integer, not {_shown(value)}")


def _read_metadata(record: Record, wanted: list[str] | type[BaseModel] | None) -> dict[str, Any] | None:
    if isinstance(wanted, list):
        return {name: record.get(name) for name in wanted}
    own = _read_object(record.get("metadata"), "metadata")
    if wanted is None:
        return own
    values = own if own is not None else {name: record[name] for name in wanted.model_fields if name in record}
    try:
        return wanted.model_validate(values).model_dump()
    except ValidationError as error:
        raise ValueError(f"the metadata do not fit {wanted.__name__}: {_first_error(error)}") from None


def _read_object(value: Any, field: str) -> dict[str, Any] | None:
    if _missing(value):
        return None
    parsed = _parse_json(value) if isinstance(value, str) else value
    if not isinstance(parsed, dict):
        raise ValueError(f"the field {field!r} must be a JSON object, not {_shown(value)}")
    return parsed


def _read_files(value: Any, field: str) -> dict[str, str] | None:
    files = _read_object(value, field)
    return None if files is None else {str(path): str(content) for path, content in files.items()}


def _read_sandbox(value: Any, field: str) -> SandboxSpec | None:
    if _missing(value):
        return None
    parsed = value
    if isinstance(value, str):
        if value.lstrip()[:1] not in ("[", "{"):
            return SandboxSpec(type=value)
        parsed = _parse_json(value)
    if isinstance(parsed, list) and len(parsed) == 2 and isinstance(parsed[0], str):
        return SandboxSpec(type=parsed[0], config=parsed[1])
    if isinstance(parsed, dict) and isinstance(parsed.get("type"), str):
        return SandboxSpec(type=parsed["type"], config=parsed.get("config"))
    raise ValueError(
        f"the sandbox (field {field!r}) must be a name or a list of name and configuration, not {_shown(value)}"
    )


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _first_error(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]


def sample_errors(error: Exception) -> str:
    """What is wrong, in one line, for an error met while a sample was made."""
    return _first_error(error) if isinstance(error, ValidationError) else str(error) or type(error).__name__


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class NoSampleError(ValueError):
    """A record function returned something else than samples."""


def samples_of(made: object) -> Sequence[Sample]:
    """What a record function returned, as a sequence.

    Raises:
        NoSampleError: if it is neither a sample nor an iterable of samples.
    """
    if isinstance(made, Sample):
        return (made,)
    if isinstance(made, Iterable) and not isinstance(made, (str, bytes, dict)):
        many = tuple(made)
        if all(isinstance(one, Sample) for one in many):
            return many
    raise NoSampleError(f"the record function must return a Sample or several, not {_shown(made)}")

"""Settings and addresses as people write them, checked in one place and refused in one sentence."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from proctor.contracts import UsageError
from proctor.schema import GenerateConfig, is_secret, redact_url

__all__ = ["check_base_url", "generation_settings"]

_WANTED = {
    "float": "a number",
    "int": "a whole number",
    "bool": "true or false",
    "string": "text",
    "list": "a list",
    "dict": "a mapping",
    "model": "a mapping",
}
_HIDDEN = frozenset({"extra_headers", "extra_body"})
_LONGEST = 80  # characters of a value in a message


def generation_settings(settings: GenerateConfig | Mapping[str, Any] | None, where: str) -> GenerateConfig:
    """``settings`` as a ``GenerateConfig`` whose fields all exist.

    Args:
        settings: a config, or its fields by name; None says nothing.
        where: whose settings they are, as the subject of the message (``the model role 'grader'``).

    Raises:
        UsageError: for a field that does not exist (logs may have newer ones, so the class itself keeps them), or a
            value that is none for its field.
    """
    if settings is None:
        return GenerateConfig()
    if not isinstance(settings, GenerateConfig):
        if not isinstance(settings, Mapping):
            raise UsageError(f"{where} has {_shown(settings)} for its generation settings: give a GenerateConfig")
        try:
            settings = GenerateConfig(**{str(name): value for name, value in settings.items()})
        except ValidationError as error:
            raise UsageError(f"{where} has {_complaint(error)}") from None
    for name in settings.model_extra or ():
        close = difflib.get_close_matches(name, GenerateConfig.model_fields, n=1)
        hint = f": did you mean {close[0]!r}?" if close else ""
        raise UsageError(f"{where} has a generation setting {name!r}, which does not exist{hint}")
    return settings


def _complaint(error: ValidationError) -> str:
    """What the first of the errors is about: ``temperature='hot', which is not a number``."""
    first = error.errors(include_url=False)[0]
    field = str(first["loc"][0]) if first["loc"] else ""
    path = ".".join(str(part) for part in first["loc"])
    kind = str(first["type"]).partition("_")[0]
    if first["type"] == "literal_error":
        wanted = f"which is none of {first['ctx']['expected']}".replace(" or ", ", ")
    elif kind in _WANTED:
        wanted = f"which is not {_WANTED[kind]}"
    else:
        wanted = f"which can't be used ({first['msg']})"
    value = "..." if field in _HIDDEN or is_secret(field) else _shown(first["input"])
    return f"{path}={value}, {wanted}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


_HOST = re.compile(r"[^\s/?#\\]+")
_FORM = "Write scheme, host and perhaps port and path, as in https://host/v1"


def check_base_url(url: str | None, source: str = "base_url", schemes: tuple[str, ...] | None = None) -> str | None:
    """``url``, if requests can be sent there.

    Args:
        url: an address with scheme and host; None and the empty text mean the provider's own.
        source: where the address was given, for the message: ``--model-base-url`` or an environment variable.
        schemes: what may stand before ``://``; None allows any.

    Raises:
        UsageError: if it is no such address.
    """
    if url is None or url == "":
        return url
    if not isinstance(url, str):
        raise UsageError(f"{source} must be an address such as https://host/v1, not {_shown(url)}")
    scheme, mark, _ = url.partition("://")
    said = f"{source}={redact_url(url)!r}"
    if not mark or not scheme:
        looks_bare = re.fullmatch(r"[\w.-]+(:\d+)?(/\S*)?", url) and ("." in url or ":" in url)
        hint = f"http://{url}" if looks_bare else "https://host/v1"
        raise UsageError(f"{said} is no address: it must begin with http:// or https://, for example {hint}")
    if any(character.isspace() for character in url):
        raise UsageError(f"{said} is no address: there is white space in it. {_FORM}")
    if schemes is not None and scheme.lower() not in schemes:
        raise UsageError(f"{said} begins with {scheme}://, but requests go by {' or '.join(schemes)}")
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname and _HOST.fullmatch(parts.netloc)) and parts.port != 0
    except ValueError:  # a port that is no number, brackets that do not match
        usable = False
    if not usable:
        raise UsageError(f"{said} is no address. {_FORM}")
    return url

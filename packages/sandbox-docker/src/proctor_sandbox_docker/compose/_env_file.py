"""Files of variables: ``.env`` beside a compose file, and what ``env_file`` names."""

from __future__ import annotations

import re
from pathlib import Path

from proctor.contracts import UsageError
from proctor_sandbox_docker.compose._interpolate import InterpolationError, Lookup, interpolate

__all__ = ["parse_env", "read_env_file"]

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*(?:[=:]\s?(.*))?", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "$": "$$"}


def read_env_file(path: Path, lookup: Lookup) -> dict[str, str]:
    """The variables of a file.

    Raises:
        UsageError: it can't be read, or a line is none of ``NAME=value``; the message names the line.
    """
    try:
        return parse_env(path.read_text(encoding="utf-8"), lookup, str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: can't be read: {error}") from None


def parse_env(text: str, lookup: Lookup, name: str = ".env") -> dict[str, str]:
    """The variables of ``text``: ``NAME=value`` a line, with comments, quotes and variables as compose reads them.

    Args:
        text: the lines.
        lookup: values of variables that are not set further up in ``text``.
        name: of the file, for errors.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(_lines(text), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise UsageError(f"{name}:{number}: {line.strip()[:40]!r} is not of the form NAME=value")
        if match[2] is None:  # a name alone: passed through, if it is set
            if (value := lookup(match[1])) is not None:
                found[match[1]] = value
            continue
        try:
            found[match[1]] = _value(match[2], lambda wanted: found.get(wanted) or lookup(wanted))
        except InterpolationError as error:
            raise UsageError(f"{name}:{number}: {match[1]}: {error}") from None
    return found


def _lines(text: str) -> list[str]:
    return text.removeprefix("\ufeff").splitlines()


def _value(text: str, lookup: Lookup) -> str:
    text = text.strip()
    if text.startswith("'") and (end := text.find("'", 1)) > 0:
        return text[1:end]
    if text.startswith('"'):
        quoted = re.match(r'"((?:[^"\\]|\\.)*)"', text)
        if quoted is not None:
            body = re.sub(r"\\([nrt\\\"$])", lambda match: _ESCAPES[match[1]], quoted[1])
            return interpolate(body, lookup)
    return interpolate(re.split(r"\s+#", text, maxsplit=1)[0].rstrip(), lookup)

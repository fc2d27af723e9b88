"""Reads docstrings: what a function does, and what its parameters are.

Three styles are understood, told apart by their marks: Google (``Args:``), NumPy (``Parameters`` over dashes) and
reST (``:param name:``).
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

__all__ = ["Docstring", "DocumentedParam", "parse_docstring"]

_GOOGLE_SECTIONS = {
    "args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters",
    "attributes", "returns", "return", "yields", "yield", "raises", "raise", "except", "exceptions", "warns",
    "example", "examples", "note", "notes", "references", "see also", "todo", "warning", "warnings",
}  # fmt: skip
_PARAM_SECTIONS = {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"}
_GOOGLE_HEADER = re.compile(r"^(?P<name>[A-Za-z ]+):\s*$")
_GOOGLE_PARAM = re.compile(
    r"^\*{0,2}(?P<name>\w+)\s*(?:\((?P<type>[^()]*(?:\([^()]*\)[^()]*)*)\))?\s*:\s*(?P<text>.*)$"
)
_NUMPY_RULE = re.compile(r"^-{3,}\s*$")
_NUMPY_PARAM = re.compile(r"^(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::\s*(?P<type>.*))?$")
_REST_FIELD = re.compile(r"^:(?P<field>\w+)(?:\s+(?P<arguments>[^:]*))?:\s*(?P<text>.*)$")
_REST_PARAMS = {"param", "parameter", "arg", "argument", "key", "keyword"}


@dataclass(slots=True)
class DocumentedParam:
    """What a docstring says of a parameter: its description, and its type when one is written."""

    description: str = ""
    type: str | None = None


@dataclass(slots=True)
class Docstring:
    """A docstring, taken apart. ``description`` is all text before the first section."""

    description: str = ""
    params: dict[str, DocumentedParam] = field(default_factory=dict)


def parse_docstring(text: str | None) -> Docstring:
    """Take a docstring apart; one without any section is all description."""
    lines = inspect.cleandoc(text or "").splitlines()
    if any(_REST_FIELD.match(line) for line in lines):
        return _rest(lines)
    if any(_NUMPY_RULE.match(line) and index > 0 for index, line in enumerate(lines)):
        return _numpy(lines)
    return _google(lines)


def _is_google_header(line: str) -> re.Match[str] | None:
    match = _GOOGLE_HEADER.match(line)
    return match if match and match["name"].strip().lower() in _GOOGLE_SECTIONS else None


def _google(lines: list[str]) -> Docstring:
    doc = Docstring()
    description: list[str] = []
    section: str | None = None
    body: list[str] = []
    for line in [*lines, "Returns:"]:  # the last header closes the section before it
        header = _is_google_header(line)
        if header:
            if section in _PARAM_SECTIONS:
                doc.params.update(_google_params(body))
            section, body = header["name"].strip().lower(), []
        elif section is None:
            description.append(line)
        else:
            body.append(line)
    doc.description = "\n".join(description).strip()
    return doc


def _google_params(lines: list[str]) -> dict[str, DocumentedParam]:
    params: dict[str, DocumentedParam] = {}
    texts: dict[str, list[str]] = {}
    indent = min((_indent(line) for line in lines if line.strip()), default=0)
    current: str | None = None
    for line in lines:
        match = _GOOGLE_PARAM.match(line.strip()) if line.strip() and _indent(line) == indent else None
        if match:
            current = match["name"]
            params[current] = DocumentedParam(type=match["type"])
            texts[current] = [match["text"]]
        elif current is not None:
            texts[current].append(line.strip())
    for name, text in texts.items():
        params[name].description = "\n".join(text).strip()
    return params


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _numpy(lines: list[str]) -> Docstring:
    rules = [index for index, line in enumerate(lines) if index > 0 and _NUMPY_RULE.match(line)]
    doc = Docstring("\n".join(lines[: rules[0] - 1]).strip())
    for position, rule in enumerate(rules):
        if lines[rule - 1].strip().lower() in _PARAM_SECTIONS:
            end = rules[position + 1] - 1 if position + 1 < len(rules) else len(lines)
            doc.params.update(_numpy_params(lines[rule + 1 : end]))
    return doc


def _numpy_params(lines: list[str]) -> dict[str, DocumentedParam]:
    params: dict[str, DocumentedParam] = {}
    texts: list[str] = []
    names: list[str] = []
    for line in lines:
        match = _NUMPY_PARAM.match(line) if _indent(line) == 0 else None
        if match:
            _describe(params, names, texts)
            names, texts = [name.strip().lstrip("*") for name in match["names"].split(",")], []
            for name in names:
                params[name] = DocumentedParam(type=match["type"])
        else:
            texts.append(line.strip())
    _describe(params, names, texts)
    return params


def _describe(params: dict[str, DocumentedParam], names: list[str], texts: list[str]) -> None:
    for name in names:
        params[name].description = "\n".join(texts).strip()


def _rest(lines: list[str]) -> Docstring:
    first = next(index for index, line in enumerate(lines) if _REST_FIELD.match(line))
    doc = Docstring("\n".join(lines[:first]).strip())
    current: DocumentedParam | None = None
    for line in lines[first:]:
        match = _REST_FIELD.match(line)
        if match is None:
            if current is not None:
                current.description = f"{current.description}\n{line.strip()}".rstrip("\n")
            continue
        words = (match["arguments"] or "").split()
        current = None
        if match["field"] in _REST_PARAMS and words:
            current = doc.params.setdefault(words[-1].lstrip("*"), DocumentedParam())
            current.description = match["text"]
            if len(words) > 1:
                current.type = " ".join(words[:-1])
        elif match["field"] == "type" and words:
            doc.params.setdefault(words[-1], DocumentedParam()).type = match["text"]
    return doc

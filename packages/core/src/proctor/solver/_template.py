"""Prompt templates: text, or a file that holds it, with ``{name}`` filled in from metadata, store and parameters."""

from __future__ import annotations

import functools
import re
import string
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.solver._state import TaskState

__all__ = ["fill", "fill_from_state", "placeholders", "template_text", "warn_unless"]


class _Formatter(string.Formatter):
    """Like ``str.format``, but what it can't fill in stays as it is: a JSON example in a prompt is no placeholder."""

    def vformat(self, format_string: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        parts: list[str] = []
        for literal, name, spec, conversion in self.parse(format_string):
            parts.append(literal)
            if name is not None:
                parts.append(self._field(name, spec or "", conversion, args, kwargs))
        return "".join(parts)

    def _field(
        self, name: str, spec: str, conversion: str | None, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> str:
        try:
            value, _ = self.get_field(name, args, kwargs)
            return format(self.convert_field(value, conversion) if conversion else value, spec)
        except (LookupError, AttributeError, ValueError, TypeError):
            return "{" + name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"


_formatter = _Formatter()


def fill(template: str, **values: Any) -> str:
    """``template`` with each ``{name}`` in ``values`` filled in, others left as they are; ``{{`` is a brace.

    A template with unbalanced braces is taken as it is, apart from plain ``{name}``.
    """
    try:
        return _formatter.vformat(template, (), values)
    except ValueError:
        for name, value in values.items():
            template = template.replace("{" + name + "}", str(value))
        return template


def fill_from_state(template: str, state: TaskState, **values: Any) -> str:
    """``template`` filled in from, in this order of precedence: ``values``, the store, the sample's metadata."""
    return fill(template, **{**state.metadata, **dict(state.store.items()), **values})


def placeholders(template: str) -> set[str]:
    """The names in ``template`` that ``fill`` would fill in, without attributes and indexes."""
    try:
        fields = {name for _, name, _, _ in _formatter.parse(template) if name}
    except ValueError:  # unbalanced: plain names only, as ``fill`` takes them
        fields = set(re.findall(r"\{(\w+)\}", template))
    names = {re.split(r"[.\[]", field, maxsplit=1)[0] for field in fields}
    return {name for name in names if name.isidentifier()}  # JSON between braces is no name


def warn_unless(placeholder: str, template: str, effect: str) -> None:
    """Warn the author of a solver or scorer of a template without ``placeholder``; ``effect`` says what follows."""
    if placeholder not in placeholders(template):
        # Past this function, the solver's own and the registry's: to the line of the task file.
        warnings.warn(f"{effect}: its template has no {{{placeholder}}} (it begins {template[:60]!r})", stacklevel=4)


@functools.lru_cache(maxsize=256)
def template_text(template: str) -> str:
    """``template``, or what is in the file of that path."""
    if not template or "\n" in template or "\0" in template or len(template) > 4096:
        return template
    try:
        path = Path(template)
        return path.read_text(encoding="utf-8") if path.is_file() else template
    except OSError:
        return template

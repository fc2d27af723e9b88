"""Write the generated parts of the docs from the code: `python docs/generate.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from proctor.schema import env_name, option_table

ROOT = Path(__file__).parents[1]


def options() -> str:
    """A table of options for each group, from their declarations."""
    parts = []
    for group in dict.fromkeys(option.group for option in option_table().values()):
        parts += [f"### {group}", "", "| option | in Python | environment | default | what it does |"]
        parts.append("|---|---|---|---|---|")
        for key, option in option_table().items():
            if option.group == group:
                flag = f"{option.flag} {option.metavar}".strip()
                cells = (f"`{flag}`", f"`{key}`", f"`{env_name(key)}`", option.default, option.help)
                parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        parts.append("")
    return "\n".join(parts)


PAGES: dict[str, tuple[str, Callable[[], str]]] = {
    "docs/command-line.md": ("options", options),
}


def page(name: str) -> str:
    """The page ``name`` with its generated part as the code has it now."""
    mark, make = PAGES[name]
    begin, end = f"<!-- {mark}: begin (docs/generate.py) -->", f"<!-- {mark}: end -->"
    text = (ROOT / name).read_text(encoding="utf-8")
    return f"{text.split(begin)[0]}{begin}\n{make()}{end}{text.split(end)[1]}"


if __name__ == "__main__":
    for name in PAGES:
        (ROOT / name).write_text(page(name), encoding="utf-8")

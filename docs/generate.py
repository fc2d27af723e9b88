"""Write the generated parts of the docs from the code: `python docs/generate.py`."""

from __future__ import annotations

from pathlib import Path

from proctor.schema import env_name, option_table

PAGE = Path(__file__).parent / "command-line.md"
BEGIN, END = "<!-- options: begin (docs/generate.py) -->", "<!-- options: end -->"


def options() -> str:
    """A table of options for each group, from their declarations."""
    parts = []
    for group in dict.fromkeys(option.group for option in option_table().values()):
        rows = [(key, option) for key, option in option_table().items() if option.group == group]
        parts.append(
            f"### {group}\n\n| option | in Python | environment | default | what it does |\n|---|---|---|---|---|"
        )
        for key, option in rows:
            flag = f"{option.flag} {option.metavar}".strip() if option.metavar else option.flag
            cells = (f"`{flag}`", f"`{key}`", f"`{env_name(key)}`", option.default, option.help)
            parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        parts.append("")
    return "\n".join(parts)


def page() -> str:
    """The page with its generated part as the code has it now."""
    text = PAGE.read_text(encoding="utf-8")
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    return f"{head}{BEGIN}\n{options()}{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

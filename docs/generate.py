"""Write the generated parts of the docs from the code: `python docs/generate.py`.

With `--api`, write what `tests/repo/api` says of the public API instead: you accept that it has changed. With reports
of `pytest --proctor-report`, put their results into the capability matrix.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import capabilities
import public_api
import reference_pages

from proctor.schema import Option, option_table, set_option_table

ROOT = Path(__file__).parents[1]


def options() -> str:
    """A table of options for each group, from their declarations."""
    parts = []
    for group in dict.fromkeys(option.group for option in option_table().values()):
        parts += [f"### {group}", "", *_table({key: o for key, o in option_table().items() if o.group == group}), ""]
    return "\n".join(parts)


def set_options() -> str:
    """A table of the options that only an eval set has."""
    return "\n".join([*_table(set_option_table()), ""])


def _table(table: Mapping[str, Option]) -> Iterator[str]:
    yield "| option | in Python | environment | default | what it does |"
    yield "|---|---|---|---|---|"
    for key, option in table.items():
        flag = f"{option.flag} {option.metavar}".strip()
        cells = (f"`{flag}`", f"`{key}`", f"`{option.variable(key)}`", option.default, option.help)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


PAGES: dict[str, tuple[str, Callable[[], str]]] = {
    "docs/command-line.md": ("options", options),
    "docs/eval-sets.md": ("options", set_options),
}


def page(name: str) -> str:
    """The page ``name`` with its generated part as the code has it now."""
    mark, make = PAGES[name]
    begin, end = f"<!-- {mark}: begin (docs/generate.py) -->", f"<!-- {mark}: end -->"
    text = (ROOT / name).read_text(encoding="utf-8")
    return f"{text.split(begin)[0]}{begin}\n{make()}{end}{text.split(end)[1]}"


def write_folder(folder: Path, texts: Mapping[Path, str]) -> None:
    """Write generated files, and remove what was generated of things that are gone."""
    folder.mkdir(exist_ok=True)
    for stale in set(folder.iterdir()) - set(texts):
        stale.unlink()
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")


def take_results(reports: Sequence[str]) -> None:
    """Put what became of conformance checks into the capability matrix, and say what it still lacks."""
    results = capabilities.read()
    for report in reports:
        try:
            results = capabilities.merged(results, json.loads(Path(report).read_text(encoding="utf-8")))
        except ValueError as error:
            sys.exit(f"{report}: {error}")
    capabilities.RESULTS.write_text(capabilities.text_of(results), encoding="utf-8")
    capabilities.PAGE.write_text(capabilities.page(), encoding="utf-8")
    for problem in capabilities.problems(results):
        print(f"docs/capabilities.json: {problem}", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:] == ["--api"]:
        write_folder(public_api.SNAPSHOT, public_api.snapshot())
    elif sys.argv[1:] and not any(word.startswith("-") for word in sys.argv[1:]):
        take_results(sys.argv[1:])
    elif sys.argv[1:]:
        sys.exit("usage: python docs/generate.py [--api | REPORT.json...]")
    else:
        for name in PAGES:
            (ROOT / name).write_text(page(name), encoding="utf-8")
        write_folder(reference_pages.FOLDER, reference_pages.pages())
        capabilities.PAGE.write_text(capabilities.page(), encoding="utf-8")

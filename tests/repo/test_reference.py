"""Every contract has a reference page: each hook, record and method, documented and with an example that runs."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import public_api
import pytest
import reference_pages

from proctor import contracts, hookspecs

TEXTS = reference_pages.pages()
EXAMPLE = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CLASSES = [name for name in contracts.__all__ if inspect.isclass(getattr(contracts, name))]


def methods() -> dict[str, Any]:
    """The function of every public method and property of a contract, by ``Owner.name``."""
    found = {}
    for owner in CLASSES:
        for name, value in vars(getattr(contracts, owner)).items():
            function = getattr(value, "fget", None) or getattr(value, "__func__", value)
            if inspect.isfunction(function) and not name.startswith("_"):
                found[f"{owner}.{name}"] = function
    return found


def example(documented: Any) -> str:
    """What stands under ``Example:`` in a docstring."""
    return (inspect.getdoc(documented) or "").partition("\nExample:\n")[2]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_a_page_is_what_the_docstrings_say(path: Path) -> None:
    assert path.exists() and path.read_text(encoding="utf-8") == TEXTS[path], "run: python docs/generate.py"


def test_no_page_is_left_of_what_is_gone() -> None:
    assert set(reference_pages.FOLDER.iterdir()) == set(TEXTS), "run: python docs/generate.py"


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_the_examples_of_a_page_run_one_after_the_other(path: Path) -> None:
    runner, names, said = doctest.DocTestRunner(), {"__name__": "example"}, list[str]()
    for match in EXAMPLE.finditer(TEXTS[path]):
        line = TEXTS[path].count("\n", 0, match.start()) + 1
        examples = doctest.DocTestParser().get_doctest(match[1], names, f"{path.name}:{line}", str(path), line)
        runner.run(examples, out=said.append, clear_globs=False)
        names |= examples.globs

    assert said == []


def test_every_public_name_is_on_one_page() -> None:
    shown = [name for _, _, names in reference_pages.PAGES.values() for name in names]

    assert sorted(shown) == sorted(contracts.__all__)


def test_every_hook_has_a_page() -> None:
    hooks = {hook for _, hook, _ in reference_pages.PAGES.values() if hook}

    assert hooks == {name for name in hookspecs.__all__ if name != "hookimpl"}


@pytest.mark.parametrize("name", contracts.__all__)
def test_a_public_name_says_what_it_is_and_has_an_example(name: str) -> None:
    home, nodes = public_api.find("proctor.contracts", name)
    page = next(text for path, text in TEXTS.items() if path.stem != "README" and f"\n## `{name}`\n" in text)
    section = page.split(f"\n## `{name}`\n")[1].split("\n## ")[0]
    described = section.split("```\n", 2)[1].strip()

    assert described and not described.startswith("#"), f"{home} does not say what {name} is"
    if isinstance(nodes[-1], ast.ClassDef | ast.FunctionDef):
        assert ">>> " in example(getattr(contracts, name))


@pytest.mark.parametrize("name", [name for name in CLASSES if dataclasses.is_dataclass(getattr(contracts, name))])
def test_every_field_of_a_record_is_documented(name: str) -> None:
    record = getattr(contracts, name)
    documented = re.findall(r"^    (\w+): \S", inspect.getdoc(record) or "", re.MULTILINE)

    assert [field.name for field in dataclasses.fields(record) if field.name not in documented] == []


@pytest.mark.parametrize("method", methods())
def test_a_method_says_what_its_arguments_are_and_has_an_example(method: str) -> None:
    name = method.partition(".")[2]
    function = methods()[method]
    text = (inspect.getdoc(function) or "").partition("\nExample:\n")[0]
    parameters = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]

    assert [parameter for parameter in parameters if not re.search(rf"\b{parameter}\b", text)] == []
    assert re.search(rf"\b{name}\b", example(function)), f"no example calls {method}"

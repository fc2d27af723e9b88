"""What is written as an outsider writes it uses public names only: plugins, their tests, the examples, the docs."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from repo_files import PACKAGES, ROOT, offenders, relative, tracked, tree

PLUGINS = {path.name: next(path.glob("src/*/__init__.py")).parent.name for path in PACKAGES if path.name != "core"}
KIT = "proctor_testkit"
OURS = re.compile(r"(?:proctor|" + "|".join(PLUGINS.values()) + r")(?:\.\w+)*")
FOLDERS = ("examples/", "tests/compat/", *(f"packages/{name}/" for name in PLUGINS))

files = [path for path in tracked() if path.suffix == ".py" and relative(path).startswith(FOLDERS)]
pages = [path for path in tracked() if path.suffix == ".md" and not relative(path).startswith("tests/data/")]


def own_name(path: Path) -> str | None:
    """The import package that ``path`` belongs to and whose private names it may use."""
    _, package, *_ = (*relative(path).split("/"), "")
    return PLUGINS.get(package) if relative(path).startswith("packages/") else None


def public(module: str, name: str = "") -> bool:
    """Whether ``from module import name`` (or ``import module``) is what the module's owner offers to others."""
    if any(part.startswith("_") and part != "__version__" for part in [*module.split("."), name]):
        return False
    if not name:
        return True
    found = importlib.import_module(module)
    if name in getattr(found, "__all__", [name]):
        return True
    try:
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


def uses(code: ast.Module) -> Iterator[tuple[str, str]]:
    """``(module, name)`` of everything of ours that ``code`` imports, reaches by a dot, or names in a string."""
    bound: dict[str, str] = {}
    for node in ast.walk(code):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, ""
                bound[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield node.module, alias.name
                bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "._" in node.value:
            yield node.value, ""
    for node in ast.walk(code):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__"):
            start, *rest = ast.unparse(node).split(".")
            if start in bound:
                yield ".".join([bound[start], *rest]), ""


def wrong(code: ast.Module, own: str | None, allowed: set[str]) -> list[str]:
    """The names of ours that ``code`` may not use: private ones, and those of other plugins than ``allowed``."""
    return [
        f"{module}.{name}".rstrip(".")
        for module, name in uses(code)
        if OURS.fullmatch(module) and module.partition(".")[0] != own
        if not public(module, name) or module.partition(".")[0] not in {"proctor", *allowed}
    ]


def test_a_plugin_uses_public_names_of_the_core_and_no_other_plugin() -> None:
    def private(path: Path) -> list[str]:
        # The kit is for tests; its own examples are plugins with tests.
        kit = {KIT} if "/src/" not in relative(path) else set()
        return wrong(tree(path), own_name(path), kit)

    found = offenders(files, private)

    assert found == {}, "what a plugin needs and can't have publicly is a fault of the core: make it public"


def test_the_docs_show_public_names() -> None:
    def private(page: Path) -> list[str]:
        shown = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        return [name for text in shown for name in wrong(ast.parse(text), None, set(PLUGINS.values()))]

    assert offenders(pages, private) == {}


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("from proctor.log import _store", "proctor.log._store"),
        ("from proctor.log._store import LogStore", "proctor.log._store.LogStore"),
        ("import proctor.log._store", "proctor.log._store"),
        ("import proctor.log\nproctor.log._store", "proctor.log._store"),
        ("import proctor.log as logs\nlogs._store.open", "proctor.log._store"),
        ("from proctor import log\nlog._store", "proctor.log._store"),
        ("from proctor.contracts import ModelAPI\nModelAPI._x()", "proctor.contracts.ModelAPI._x"),
        ("import importlib\nimportlib.import_module('proctor.log._store')", "proctor.log._store"),
        ("from proctor.contracts import importlib", "proctor.contracts.importlib"),
        ("def make():\n    from proctor_provider_openai import hooks", "proctor_provider_openai.hooks"),
    ],
)
def test_the_check_sees(code: str, name: str) -> None:
    assert wrong(ast.parse(code), "proctor_log_s3", set()) == [name]


@pytest.mark.parametrize(
    "code",
    [
        "from proctor.contracts import ModelAPI, Retry",
        "from proctor import log\nlog.MemoryStore",
        "from proctor_log_s3._client import Client",
        "import proctor\nproctor.__version__",
        "class A:\n    def f(self):\n        return self._mine",
    ],
)
def test_the_check_lets_pass(code: str) -> None:
    assert wrong(ast.parse(code), "proctor_log_s3", set()) == []


def test_the_check_covers_every_plugin_and_the_examples() -> None:
    covered = {relative(path).split("/src/")[0] for path in files if "/src/" in relative(path)}

    assert covered >= {f"packages/{name}" for name in PLUGINS}
    assert any(relative(path).startswith("examples/") for path in files)
    assert any(relative(path).startswith("packages/testkit/examples/") for path in files)
    assert (ROOT / "examples").is_dir()

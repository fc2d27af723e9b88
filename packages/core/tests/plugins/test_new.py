"""``proctor plugins new``: what is written, under which names, and what is refused."""

from __future__ import annotations

import ast
import json
import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

import proctor
from proctor.cli._plugins import plugins
from proctor.contracts import UsageError
from proctor.plugins import KINDS
from proctor.plugins._manager import Manager
from proctor.plugins._scaffold import NEW, TEMPLATES, _renamed, _words, write_package
from proctor.plugins._scan import NAME

WORDS = sorted(NEW)


@pytest.mark.parametrize("word", WORDS)
def test_a_package_is_written_under_its_name(manager: Callable[..., Manager], tmp_path: Path, word: str) -> None:
    package = write_package(manager(), word, "blue-sky", tmp_path / "new")

    folder = Path(package.folder)
    assert folder == tmp_path / "new" / package.distribution
    assert package.distribution.endswith("-blue-sky")
    found = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in folder.rglob("*.*")}
    found = {name: text for name, text in found.items() if (folder / name).is_file()}
    assert set(found) == set(package.files)
    assert [name for name, text in found.items() if "acme" in f"{name} {text}".lower()] == []
    module = package.distribution.replace("-", "_")
    assert {f"src/{module}/__init__.py", f"src/{module}/py.typed", "README.md", "pyproject.toml"} <= set(found)
    assert any(re.fullmatch(r"tests/test_\w+\.py", name) for name in found)
    for name, text in found.items():
        if name.endswith(".py"):
            compile(text, name, "exec")


@pytest.mark.parametrize(
    ("word", "name"),
    [("model-provider", "model"), ("log-store", "log"), ("sandbox", "sandbox"), ("display", "display")],
)
def test_no_class_has_the_name_of_what_it_implements(
    manager: Callable[..., Manager], tmp_path: Path, word: str, name: str
) -> None:
    package = write_package(manager(), word, name, tmp_path)

    trees = [ast.parse((Path(package.folder) / file).read_text()) for file in package.files if file.endswith(".py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    own = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    of_proctor = [node for node in nodes if isinstance(node, ast.ImportFrom) and "_" not in str(node.module)]
    assert own
    assert not own & {alias.name for node in of_proctor for alias in node.names}


@pytest.mark.parametrize("word", WORDS)
def test_its_project_says_what_it_offers_and_needs(manager: Callable[..., Manager], tmp_path: Path, word: str) -> None:
    package = write_package(manager(), word, "blue", tmp_path)

    project = tomllib.loads((Path(package.folder) / "pyproject.toml").read_text())["project"]
    assert project["name"] == package.distribution
    [[entry, module]] = project["entry-points"][KINDS[package.kind].group].items()
    assert entry == "blue"
    assert f"src/{module.replace('.', '/')}{'/__init__' if word == 'tasks' else ''}.py" in package.files
    needed = [Requirement(line) for line in project["dependencies"] + project["optional-dependencies"]["test"]]
    assert {"proctor-core", "proctor-testkit"} <= {item.name for item in needed}
    for item in needed:
        assert {spec.operator for spec in item.specifier} == {">=", "<"}
        assert not item.name.startswith("proctor") or item.specifier.contains(proctor.__version__, prereleases=True)


def test_what_it_offers_is_found_where_it_is_installed(manager: Callable[..., Manager], tmp_path: Path) -> None:
    # given a package that was written, with the metadata that an installer would make of it
    package = write_package(manager(), "log-store", "blue", tmp_path)
    site = Path(package.folder) / "src"
    info = site / "proctor_log_blue-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: proctor-log-blue\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[proctor.log_stores]\nblue = proctor_log_blue.hooks\n")

    installed = manager(site)

    assert installed.get("log_stores", "blue").scheme == "blue"
    with pytest.raises(UsageError, match=r"'blue' is offered by proctor-log-blue"):
        write_package(installed, "log-store", "blue", tmp_path / "other")
    with pytest.raises(UsageError, match=r"the core's own|comes with proctor-core"):
        write_package(installed, "log-store", "memory", tmp_path / "other")


@pytest.mark.parametrize(
    "name", ["", "Blue", "blue_sky", "2blue", "-blue", "blue-", "blue--sky", "b" * 41, "blau/grün", "../blue", "class"]
)
def test_a_bad_name_is_refused(manager: Callable[..., Manager], tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="small letters, digits and single hyphens"):
        write_package(manager(), "sandbox", name, tmp_path)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("word", "name", "says"),
    [
        ("model-provider", "openai", "comes with proctor-provider-openai"),
        ("command", "eval", "the core's own"),
        ("log-stor", "blue", "Did you mean 'log-store'"),
        ("runner", "blue", "no kind of plugin 'runner' that can be written"),
    ],
)
def test_a_taken_name_and_an_unknown_kind_are_refused(
    manager: Callable[..., Manager], tmp_path: Path, word: str, name: str, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        write_package(manager(), word, name, tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_nothing_that_is_there_is_written_over(manager: Callable[..., Manager], tmp_path: Path) -> None:
    (tmp_path / "proctor-log-blue").write_text("mine")

    with pytest.raises(UsageError, match="is there already"):
        write_package(manager(), "log-store", "blue", tmp_path)

    assert (tmp_path / "proctor-log-blue").read_text() == "mine"


def test_a_folder_that_can_not_be_written_is_said(manager: Callable[..., Manager], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UsageError, match="can't be written"):
        write_package(manager(), "log-store", "blue", tmp_path / "file")


def test_the_command_says_what_to_do_next(tmp_path: Path) -> None:
    result = CliRunner().invoke(plugins, ["new", "tasks", "blue", "--dir", str(tmp_path)], standalone_mode=False)

    assert f"cd {tmp_path}{os.sep}proctor-tasks-blue" in result.output
    assert "pip install -e '.[test]'" in result.output
    again = CliRunner().invoke(
        plugins, ["new", "tasks", "red", "--dir", str(tmp_path), "--json"], standalone_mode=False
    )
    assert json.loads(again.output)["distribution"] == "proctor-tasks-red"


@given(st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,5}){0,2}", fullmatch=True))
def test_every_name_gives_names_that_python_and_the_core_take(name: str) -> None:
    renamed = _renamed(
        "proctor_log_acme acme AcmeStore ACME_KEY",
        _words("log", name, "".join(part.capitalize() for part in name.split("-"))),
    ).split()

    assert renamed[0].isidentifier() and renamed[2].isidentifier() and renamed[3].isidentifier()
    assert NAME.fullmatch(renamed[1])


@pytest.mark.parametrize("word", WORDS)
def test_templates_are_short(word: str) -> None:
    assert all(len(path.read_text().splitlines()) <= 160 for path in (TEMPLATES / word).rglob("*.py"))

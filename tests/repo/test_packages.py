"""What the packages say of themselves: bounds on what they need, the same rules, and where they were installed from."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from email.message import Message
from email.parser import Parser
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from repo_files import PACKAGES, offenders, sources, tree


def project(package: Path) -> dict[str, object]:
    data = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert isinstance(data, dict)
    return data


def built_metadata(package: Path) -> Message:
    """The metadata of what is installed: in the session `installed` those of the built wheel."""
    text = distribution(f"proctor-{package.name}").read_text("METADATA")
    assert text is not None
    return Parser().parsestr(text)


def requirements(metadata: Message) -> list[Requirement]:
    return [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_every_requirement_has_a_lower_bound(package: Path) -> None:
    wanted = requirements(built_metadata(package))

    assert [str(item) for item in wanted if not any(spec.operator == ">=" for spec in item.specifier)] == []


# What a distribution is made of, and says so: who declares the one may import the other.
PARTS = {"botocore": "boto3", "pydantic_core": "pydantic", "requests": "docker", "urllib3": "docker"}
# Imported only in a loop of trio, which the core's extra brings.
WITHIN = {"trio": "proctor-core"}


def imported(path: Path) -> set[str]:
    """The import packages that a file names, at the top or later; those of annotations alone, too."""
    names: list[str] = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_a_package_declares_whatever_it_imports(package: Path) -> None:
    """In a shared environment another package's dependency hides that one is not declared."""
    declared = {canonicalize_name(item.name) for item in requirements(built_metadata(package))}
    ours = {next(path.glob("src/*/__init__.py")).parent.name: f"proctor-{path.name}" for path in PACKAGES}
    owners = packages_distributions()

    def undeclared(path: Path) -> list[str]:
        def known(name: str) -> bool:
            named = [ours.get(name), PARTS.get(name), WITHIN.get(name), *owners.get(name, [])]
            own = ours.get(name) == f"proctor-{package.name}"
            return own or any(canonicalize_name(owner) in declared for owner in named if owner)

        return sorted(name for name in imported(path) if not known(name))

    assert offenders([path for path in sources() if path.is_relative_to(package)], undeclared) == {}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_packages_of_this_repository_are_needed_within_a_range(package: Path) -> None:
    ours = [item for item in requirements(built_metadata(package)) if item.name.startswith("proctor-")]

    assert package.name == "core" or any(item.name == "proctor-core" for item in ours)
    for item in ours:
        operators = {spec.operator for spec in item.specifier}
        assert operators == {">=", "<"}, f"{item}: real bounds, so that a package never pins another"
        assert item.specifier.contains(distribution(item.name).version)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_metadata_are_complete(package: Path) -> None:
    metadata = built_metadata(package)

    assert metadata["Name"] == f"proctor-{package.name}"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Summary"]
    assert len(str(metadata.get_payload())) > 200, "the README says what the package is for"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_a_package_has_what_a_package_needs(package: Path) -> None:
    [typed] = package.glob("src/*/py.typed")
    changes = (package / "CHANGELOG.md").read_text(encoding="utf-8")

    assert typed.is_file()
    assert f"## {project(package)['version']}" in changes
    assert list(package.glob("tests/**/test_*.py"))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_it_was_installed_from_this_checkout_and_from_no_index(package: Path) -> None:
    """No proctor-* stands in the index: one that came from there would be somebody else's."""
    origin = distribution(f"proctor-{package.name}").read_text("direct_url.json")

    assert origin is not None, "installed by name: pass the paths of all packages to the installer"
    assert json.loads(origin)["url"].startswith("file://")


def test_importing_the_core_imports_nothing_heavy() -> None:
    program = "import sys, proctor; print(*sorted(sys.modules))"

    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.split()

    heavy = {"anyio", "asyncio", "click", "httpx2", "openai", "pydantic", "rich", "yaml", "zstandard"}
    assert sorted(heavy & set(loaded)) == []


def test_hook_modules_import_no_sdk() -> None:
    entries = [
        entry.value
        for package in PACKAGES
        for entry in distribution(f"proctor-{package.name}").entry_points
        if entry.group.startswith("proctor.") and entry.group != "proctor.tasks"
    ]
    program = "import importlib, sys; [importlib.import_module(m) for m in sys.argv[1:]]; print(*sys.modules)"

    command = [sys.executable, "-c", program, *entries]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)

    sdks = {"aiohttp", "anthropic", "boto3", "httpx2", "openai", "pydantic", "rich", "xllamacpp"}
    assert sorted(sdks & set(done.stdout.split())) == []

"""What the packages say of themselves: bounds on what they need, the same rules, and where they were installed from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from repo_files import PACKAGES


def project(package: Path) -> dict[str, object]:
    data = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert isinstance(data, dict)
    return data


def built_metadata(package: Path) -> Message:
    """The metadata of the built wheel where there is one, else of what is installed."""
    name = f"proctor-{package.name}"
    wheels = os.environ.get("PROCTOR_WHEELS")
    if not wheels:
        text = distribution(name).read_text("METADATA")
        assert text is not None
        return Parser().parsestr(text)
    [wheel] = Path(wheels).glob(f"{name.replace('-', '_')}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        [member] = [member for member in archive.namelist() if member.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(member).decode())


def requirements(metadata: Message) -> list[Requirement]:
    return [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_every_requirement_has_a_lower_bound(package: Path) -> None:
    wanted = requirements(built_metadata(package))

    assert [str(item) for item in wanted if not any(spec.operator == ">=" for spec in item.specifier)] == []


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

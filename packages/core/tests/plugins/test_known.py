"""The list of well-known names keeps up with the packages of this repository."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from proctor.plugins import KINDS
from proctor.plugins._known import KNOWN

PACKAGES = sorted(Path(__file__).parents[3].glob("*/pyproject.toml"))


@pytest.mark.parametrize("file", PACKAGES, ids=lambda path: path.parent.name)
def test_every_name_of_a_package_here_is_known(file: Path) -> None:
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    groups = project.get("entry-points", {})
    offered = {(kind, name) for kind in KINDS for name in groups.get(f"proctor.{kind}", {})}

    assert {(kind, name) for kind, name in offered if KNOWN.get(kind, {}).get(name) != project["name"]} == set()


def test_only_kinds_that_exist_have_known_names() -> None:
    assert set(KNOWN) <= set(KINDS)

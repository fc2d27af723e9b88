"""Built wheels have all that the source has, and are what is tested here: only in the nox session ``installed``."""

from __future__ import annotations

import importlib
import json
import os
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from repo_files import PACKAGES, tracked

WHEELS = Path(os.environ["PROCTOR_WHEELS"])


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_a_wheel_has_every_file_of_its_source(package: Path) -> None:
    [wheel] = WHEELS.glob(f"proctor_{package.name.replace('-', '_')}-*.whl")
    files = [path.relative_to(package / "src") for path in tracked() if path.is_relative_to(package / "src")]

    with zipfile.ZipFile(wheel) as archive:
        missing = {file.as_posix() for file in files} - set(archive.namelist())

    assert files
    assert missing == set()


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_what_is_tested_came_from_the_wheel(package: Path) -> None:
    origin = distribution(f"proctor-{package.name}").read_text("direct_url.json")
    module = importlib.import_module(next(package.glob("src/*/__init__.py")).parent.name)

    assert json.loads(origin or "{}")["url"].endswith(".whl")
    assert module.__file__ is not None and Path(module.__file__).is_relative_to(sys.prefix)

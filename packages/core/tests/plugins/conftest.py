"""Distributions that look installed: folders with code and metadata, put on ``sys.path``."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

import pytest

from proctor.plugins import _manager
from proctor.plugins._manager import Manager
from proctor.plugins._scan import Scan, scan

FIXTURES = Path(__file__).parents[1] / "fixtures" / "plugins"
BROKEN = ("import_error", "system_exit", "unknown_hook", "wrong_core", "name_taken")


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what a test imported, started or configured."""
    monkeypatch.setattr("proctor.plugins._current", None)
    monkeypatch.setattr(_manager, "_started", set())
    before, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if name.startswith(("acme", "broken", "_proctor_plugin")):
            del sys.modules[name]


@pytest.fixture
def broken() -> tuple[str, ...]:
    """The folders of the five broken plugins."""
    return BROKEN


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Path]]:
    """Put folders, or fixture distributions by name, on ``sys.path``."""

    def put(*names: str | Path) -> list[Path]:
        paths = [FIXTURES / name for name in names]  # an absolute path stays what it is
        for path in paths:
            assert path.is_dir()
            monkeypatch.syspath_prepend(str(path))
        return paths

    return put


@pytest.fixture
def manager(put: Callable[..., list[Path]]) -> Callable[..., Manager]:
    """A manager that sees only the distributions in the folders given."""

    def make(*names: str | Path, **settings: object) -> Manager:
        paths = [str(path) for path in put(*names)]

        def scanner() -> Scan:
            return scan(metadata.distributions(path=paths))

        return Manager(**{"scanner": scanner, "environ": {}, **settings})  # type: ignore[arg-type]

    return make


@pytest.fixture
def distribution(tmp_path: Path) -> Callable[..., Path]:
    """Write a distribution with a hooks module; the folder to put on ``sys.path``."""

    def write(
        name: str,
        hooks: str = "",
        *,
        entries: Mapping[str, Mapping[str, str]] | None = None,
        version: str = "1.0",
        requires: tuple[str, ...] = ("proctor-core>=0.1",),
        package: str | None = None,
    ) -> Path:
        root = tmp_path / f"{name}-{version}"
        package = package or name.replace("-", "_")
        code = root / package
        code.mkdir(parents=True)
        (code / "__init__.py").write_text("")
        (code / "hooks.py").write_text(textwrap.dedent(hooks))
        info = root / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        (info / "METADATA").write_text("\n".join([*lines, *(f"Requires-Dist: {line}" for line in requires), ""]))
        groups = entries or {"proctor.model_providers": {name.partition("-")[0]: f"{package}.hooks"}}
        lines = []
        for group, points in groups.items():
            lines += [f"[{group}]", *(f"{point} = {value}" for point, value in points.items())]
        (info / "entry_points.txt").write_text("\n".join([*lines, ""]))
        return root

    return write

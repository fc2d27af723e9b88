"""A plugin without packaging: ``--plugin path/to/file.py`` and ``--plugin module``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from proctor import plugins as room
from proctor.contracts import UsageError
from proctor.plugins._manager import Manager

CODE = """
from proctor.contracts import DisplayProvider, TaskPackage
from proctor.hookspecs import hookimpl


@hookimpl
def proctor_displays():
    return [DisplayProvider(name="acme", factory=lambda args: "a screen")]


@hookimpl
def proctor_task_packages():
    return [TaskPackage(name="acme", package="acme_tasks")]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "acme_file.py"
    path.write_text(CODE)
    return path


def test_a_file_offers_what_its_hooks_return(manager: Callable[..., Manager], file: Path) -> None:
    plugins = manager(extra=[str(file)])

    assert plugins.get("displays", "acme").factory(None) == "a screen"
    assert plugins.get("tasks", "acme").package == "acme_tasks"
    assert plugins.names("displays") == ["acme"]
    (distribution, version), *_ = plugins.used().items()
    assert distribution == str(file)
    assert version.startswith("blake2b:")


def test_a_module_offers_what_its_hooks_return(
    manager: Callable[..., Manager], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(file.parent))

    assert manager(extra=["acme_file"]).names("displays") == ["acme"]


def test_a_file_can_import_its_neighbour(manager: Callable[..., Manager], file: Path) -> None:
    (file.parent / "acme_neighbour.py").write_text("SCREEN = 1\n")
    file.write_text(CODE.replace('"a screen"', "__import__('acme_neighbour').SCREEN"))

    assert manager(extra=[str(file)]).get("displays", "acme").factory(None) == 1


def test_the_inventory_shows_it(manager: Callable[..., Manager], file: Path) -> None:
    info = manager(extra=[str(file)]).inventory()[0]

    assert (info.kind, info.name, info.distribution, info.state) == ("displays", "acme", str(file), "loaded")


def test_its_names_may_not_hide_installed_ones(manager: Callable[..., Manager], file: Path) -> None:
    file.write_text(
        CODE.replace("display", "sandbox").replace("Display", "Sandbox").replace("_sandboxs", "_sandbox_providers")
    )
    plugins = manager("good", extra=[str(file)])

    with pytest.raises(UsageError, match=r"acme-good 1\.2\.0 and --plugin .*--disable-plugin acme-good:acme") as raised:
        plugins.get("sandbox_providers", "acme")

    assert str(file) in str(raised.value)


def test_an_installed_plugin_given_again_is_one_thing(manager: Callable[..., Manager]) -> None:
    assert manager("good", extra=["acme_good.hooks"]).get("model_providers", "acme").name == "acme"


def test_what_is_given_by_name_comes_back_although_its_distribution_is_switched_off(
    manager: Callable[..., Manager],
) -> None:
    plugins = manager("good", disabled=["acme-good"], extra=["acme_good.hooks"])

    assert plugins.get("model_providers", "acme").name == "acme"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("import nothing_of_this_name", "No module named 'nothing_of_this_name'"),
        ("raise SystemExit", "ends the program"),
        ("x = 1", "implements no hook of Proctor"),
        ("from proctor.hookspecs import hookimpl\n@hookimpl\ndef proctor_screens(): return []", "no such hook"),
        ("from proctor.hookspecs import hookimpl\n@hookimpl\ndef proctor_displays(): return [1]", "'int' instead"),
        ("def (", "SyntaxError"),
    ],
)
def test_a_file_that_can_not_be_used_is_refused_at_once(
    manager: Callable[..., Manager], file: Path, code: str, text: str
) -> None:
    file.write_text(code)

    with pytest.raises(UsageError) as raised:
        manager(extra=[str(file)])

    assert text in str(raised.value)
    assert f"--plugin {file}" in str(raised.value)


@pytest.mark.parametrize("spec", ["no/such/file.py", "no_such_module_anywhere"])
def test_what_is_not_there_is_refused_at_once(spec: str) -> None:
    with pytest.raises(UsageError, match=f"--plugin {spec}(: there is no such file.| can't be used)"):
        room.configure([spec])


def test_a_file_given_as_a_module_is_guessed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)

    with pytest.raises(UsageError, match=r"Did you mean the file, --plugin \./acme_file\.py\?"):
        room.configure(["acme_file"])


def test_a_home_folder_is_found(manager: Callable[..., Manager], file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(file.parent))

    assert manager(extra=["~/acme_file.py"]).names("displays") == ["acme"]


def test_a_refused_plugin_leaves_what_was_configured(file: Path) -> None:
    room.configure([str(file)])
    with pytest.raises(UsageError):
        room.configure(["no_such_module_anywhere"])

    assert "acme" in room.names("displays")


def test_the_environment_adds_plugins(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "acme" not in room.names("displays")

    monkeypatch.setenv("PROCTOR_PLUGINS", f"{file},")
    room.configure()

    assert "acme" in room.names("displays")

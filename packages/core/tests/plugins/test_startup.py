"""Startup hooks: each once a process, and none can stop the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.plugins import Code
from proctor.plugins._manager import Manager

MARK = """
from proctor.hookspecs import hookimpl

@hookimpl
def proctor_startup(context):
    context.environ["{name}"] = context.environ.get("{name}", "") + context.core_version
"""


@pytest.fixture
def starter(distribution: Callable[..., Path]) -> Callable[..., Path]:
    def write(name: str, body: str | None = None, **settings: object) -> Path:
        entries = {"proctor.startup": {"it": f"{name.replace('-', '_')}.hooks"}}
        return distribution(name, MARK.format(name=name) if body is None else body, entries=entries, **settings)

    return write


def test_each_hook_runs_once(manager: Callable[..., Manager], starter: Callable[..., Path]) -> None:
    environ: dict[str, str] = {}
    root = starter("acme-one")
    plugins = manager(root, environ=environ, core_version="0.1.5")

    plugins.startup()
    plugins.startup()
    manager(root, environ=environ).startup()

    assert environ == {"acme-one": "0.1.5"}
    assert plugins.used() == {"acme-one": "1.0"}


def test_hooks_of_one_entry_name_do_not_clash(manager: Callable[..., Manager], starter: Callable[..., Path]) -> None:
    environ: dict[str, str] = {}
    plugins = manager(starter("acme-one"), starter("acme-two"), environ=environ)

    plugins.startup()

    assert set(environ) == {"acme-one", "acme-two"}
    assert plugins.faults() == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("raise SystemExit", Code.IMPORT_EXIT),
        ("from proctor.hookspecs import hookimpl\n@hookimpl\ndef proctor_startup(): raise OSError", Code.HOOK_RAISED),
        ("from proctor.hookspecs import hookimpl\n@hookimpl\nasync def proctor_startup(): pass", Code.BAD_RECORD),
        ("from proctor.hookspecs import hookimpl\n@hookimpl\ndef proctor_start(): pass", Code.UNKNOWN_HOOK),
        ("", Code.NO_RECORD),
    ],
)
def test_one_that_fails_stops_no_other(
    manager: Callable[..., Manager], starter: Callable[..., Path], body: str, code: Code
) -> None:
    environ: dict[str, str] = {}
    plugins = manager(starter("acme-bad", body), starter("acme-good-too"), environ=environ)

    with pytest.warns(UserWarning, match=r"acme-bad 1\.0.*goes on without this startup hook") as warned:
        plugins.startup()

    assert len(warned) == 1

    assert set(environ) == {"acme-good-too"}
    assert [fault.code for fault in plugins.faults()] == [code]


def test_what_is_switched_off_or_refused_does_not_start(
    manager: Callable[..., Manager], starter: Callable[..., Path]
) -> None:
    environ: dict[str, str] = {}
    refused = starter("acme-later", requires=("proctor-core>=77",))
    plugins = manager(starter("acme-off"), refused, environ=environ, disabled=["acme-off"])

    plugins.startup()

    assert environ == {}

"""One broken plugin breaks nothing else: five that are broken, each in its way, beside one that is sound."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.contracts import ModelProvider, UsageError
from proctor.plugins import Code, _slow
from proctor.plugins._manager import Manager


@pytest.fixture
def all_of_them(manager: Callable[..., Manager], broken: tuple[str, ...]) -> Manager:
    return manager("good", *broken)


@pytest.mark.parametrize(
    ("name", "distribution", "code", "text"),
    [
        ("unimportable", "broken-import-error", Code.IMPORT_ERROR, "No module named 'module_that_nobody_has'"),
        ("quitter", "broken-system-exit", Code.IMPORT_EXIT, "ends the program when imported (SystemExit 3)"),
        ("mistyped", "broken-unknown-hook", Code.UNKNOWN_HOOK, "Did you mean 'proctor_model_providers'?"),
        ("futuristic", "broken-wrong-core", Code.CORE_VERSION, "needs proctor-core<78,>=77"),
        ("acme", "acme-good", Code.NAME_TAKEN, "--disable-plugin"),
    ],
)
def test_a_broken_plugin_says_what_is_wrong_when_it_is_asked_for(
    all_of_them: Manager, name: str, distribution: str, code: Code, text: str
) -> None:
    with pytest.raises(UsageError) as raised:
        all_of_them.get("model_providers", name)

    assert text in str(raised.value)
    assert distribution in str(raised.value)
    fault = next(fault for fault in all_of_them.faults() if fault.code is code)
    assert distribution in fault.distribution
    assert fault.severity == "error"


def test_the_sound_plugin_works_among_the_broken_ones(all_of_them: Manager) -> None:
    for name in ("unimportable", "quitter", "mistyped", "futuristic", "acme"):
        with pytest.raises(UsageError):
            all_of_them.get("model_providers", name)

    assert all_of_them.get("sandbox_providers", "acme").backends == ("asyncio",)
    assert isinstance(all_of_them.get("model_providers", "other-acme"), ModelProvider)


def test_nothing_is_imported_to_list_them(all_of_them: Manager) -> None:
    states = {(info.kind, info.name, info.distribution): info.state for info in all_of_them.inventory()}

    assert states["model_providers", "futuristic", "broken-wrong-core"] == "refused"
    assert states["model_providers", "acme", "acme-good"] == "taken"
    assert states["model_providers", "acme", "broken-name-taken"] == "taken"
    assert states["model_providers", "unimportable", "broken-import-error"] == "available"
    assert states["sandbox_providers", "acme", "acme-good"] == "available"
    assert not [name for name in sys.modules if name.startswith(("acme_", "broken_"))]


def test_a_plugin_that_failed_is_listed_as_broken(all_of_them: Manager) -> None:
    with pytest.raises(UsageError):
        all_of_them.get("model_providers", "unimportable")

    info = next(info for info in all_of_them.inventory() if info.name == "unimportable")

    assert info.state == "broken"
    assert info.fault is not None
    assert info.fault.detail.startswith("Traceback")
    assert "_loader.py" not in info.fault.detail


def test_a_plugin_made_for_another_core_is_refused_before_it_is_imported(all_of_them: Manager) -> None:
    with pytest.raises(UsageError, match="pip install --upgrade proctor-core broken-wrong-core"):
        all_of_them.get("model_providers", "futuristic")

    assert "broken_wrong_core" not in sys.modules


def test_a_failing_import_is_tried_once(
    manager: Callable[..., Manager], distribution: Callable[..., Path], tmp_path: Path
) -> None:
    count = tmp_path / "count"
    root = distribution("acme-count", f"with open({str(count)!r}, 'a') as f: f.write('x')\nraise RuntimeError('no')")
    plugins = manager(root)

    for _ in range(3):
        with pytest.raises(UsageError, match="RuntimeError: no"):
            plugins.get("model_providers", "acme")

    assert count.read_text() == "x"


@pytest.mark.parametrize(
    "raises", ["GeneratorExit()", "MemoryError()", "type('Worse', (BaseException,), {})('bad')", "RecursionError()"]
)
def test_whatever_an_import_raises_is_a_fault(
    manager: Callable[..., Manager], distribution: Callable[..., Path], raises: str
) -> None:
    plugins = manager(distribution("acme-raises", f"raise {raises}"))

    with pytest.raises(UsageError, match="can't be imported"):
        plugins.get("model_providers", "acme")


def test_an_interrupt_by_the_person_is_not_a_fault(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    plugins = manager(distribution("acme-interrupt", "raise KeyboardInterrupt"))

    with pytest.raises(KeyboardInterrupt):
        plugins.get("model_providers", "acme")


HOOKS = "from proctor.contracts import ModelProvider\nfrom proctor.hookspecs import hookimpl\n"


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        ("@hookimpl\ndef proctor_model_providers(): 1 / 0", Code.HOOK_RAISED, "ZeroDivisionError"),
        ("@hookimpl\ndef proctor_model_providers(): raise SystemExit(1)", Code.HOOK_RAISED, "SystemExit"),
        ("@hookimpl\nasync def proctor_model_providers(): return []", Code.BAD_RECORD, "synchronous"),
        ("@hookimpl\ndef proctor_model_providers(): return 7", Code.BAD_RECORD, "'int' instead of a list"),
        ("@hookimpl\ndef proctor_model_providers(): return ['acme']", Code.BAD_RECORD, "'str' instead of a Mo"),
        ("@hookimpl\ndef proctor_model_providers(): return [ModelProvider]", Code.BAD_RECORD, "a class instead"),
        ("@hookimpl\ndef proctor_model_providers(): return [ModelProvider('acme', None)]", Code.BAD_RECORD, "factory"),
        ("@hookimpl\ndef proctor_model_providers(): return [ModelProvider('', print)]", Code.BAD_RECORD, "name is ''"),
        (
            "@hookimpl\ndef proctor_model_providers(): return [ModelProvider('acme', print, args=dict)]",
            Code.BAD_RECORD,
            "no dataclass",
        ),
        (
            "@hookimpl\ndef proctor_model_providers(): return [ModelProvider('acme', print, env=('KEY',))]",
            Code.BAD_RECORD,
            "alternatives of sets",
        ),
        (
            "@hookimpl\ndef proctor_model_providers(): return [ModelProvider('acme', print, backends=('curio',))]",
            Code.BAD_RECORD,
            "'asyncio' and 'trio'",
        ),
        (
            "@hookimpl\ndef proctor_model_providers(): return [ModelProvider('other', print)] * 2",
            Code.BAD_RECORD,
            "two records named 'other'",
        ),
        (
            "@hookimpl(wrapper=True)\ndef proctor_model_providers(): return (yield)",
            Code.BAD_RECORD,
            "is a wrapper",
        ),
        ("@hookimpl\ndef proctor_model_providers(context): return []", Code.BAD_HOOK, "context"),
        ("@hookimpl\ndef proctor_displays(): return []", Code.NO_RECORD, "does not implement proctor_model_providers"),
        ("def proctor_model_providers(): return []", Code.NO_RECORD, "not decorated with @hookimpl"),
        ("@hookimpl\ndef proctor_model_providers(): return []", Code.NO_RECORD, "returns no record of that name"),
        ("@hookimpl\ndef proctor_model_providers(): pass", Code.NO_RECORD, "returns no record of that name"),
    ],
)
def test_a_faulty_hook_is_a_typed_fault(
    manager: Callable[..., Manager], distribution: Callable[..., Path], body: str, code: Code, text: str
) -> None:
    plugins = manager("good", distribution("acmefault", HOOKS + body))

    with pytest.raises(UsageError) as raised:
        plugins.get("model_providers", "acmefault")

    assert text in str(raised.value)
    assert code in {fault.code for fault in plugins.faults()}
    assert plugins.get("model_providers", "acme").name == "acme"


def test_a_lazy_module_that_raises_costs_nobody_else(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    body = "def __getattr__(name): raise OSError(name)\ndef __dir__(): return ['lazy']"
    plugins = manager("good", distribution("acmelazy", body))

    with pytest.raises(UsageError):
        plugins.get("model_providers", "acmelazy")

    assert plugins.get("model_providers", "acme").name == "acme"


def test_a_good_record_beside_a_faulty_one_still_counts(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    body = "@hookimpl\ndef proctor_model_providers(): return [ModelProvider('acme', print), None]"
    plugins = manager(distribution("acme-half", HOOKS + body))

    assert plugins.get("model_providers", "acme").name == "acme"
    assert [fault.code for fault in plugins.faults()] == [Code.BAD_RECORD]
    assert [info.state for info in plugins.inventory()] == ["loaded"]


def test_a_record_without_an_entry_point_is_told_and_not_used(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    body = "@hookimpl\ndef proctor_model_providers(): return [ModelProvider(n, print) for n in ('acme', 'secret')]"
    plugins = manager(distribution("acme-more", HOOKS + body))

    plugins.get("model_providers", "acme")

    fault = next(fault for fault in plugins.faults() if fault.code is Code.UNDECLARED_RECORD)
    assert fault.name == "secret"
    assert fault.severity == "warning"
    with pytest.raises(UsageError, match="no model provider 'secret'"):
        plugins.get("model_providers", "secret")


def test_a_slow_import_is_told(monkeypatch: pytest.MonkeyPatch, manager: Callable[..., Manager]) -> None:
    ticks = iter(range(0, 1000, 5))
    plugins = manager("good")
    monkeypatch.setattr(plugins._loader, "_clock", lambda: float(next(ticks)))

    plugins.get("model_providers", "acme")

    fault = next(fault for fault in plugins.faults() if fault.code is Code.SLOW_IMPORT)
    assert "took 5.0 s" in fault.message


def test_an_import_that_hangs_is_said_while_it_does(
    monkeypatch: pytest.MonkeyPatch, manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    said: list[str] = []
    monkeypatch.setattr(_slow, "PATIENCE", 0.01)
    monkeypatch.setattr(_slow, "_warn", lambda text: (said.append(text), _slow.SAID.set()))  # type: ignore[attr-defined]
    monkeypatch.setattr(_slow, "SAID", threading.Event(), raising=False)
    plugins = manager(distribution("acme-hang", "from proctor.plugins import _slow\nassert _slow.SAID.wait(60)"))

    with pytest.raises(UsageError):
        plugins.get("model_providers", "acme")

    assert any("importing acme_hang.hooks of acme-hang 1.0" in text for text in said)
    assert any("--disable-plugin acme-hang" in text for text in said)


def test_a_hook_that_does_not_fit_is_said_in_whole_sentences(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    plugins = manager(distribution("acme-odd", HOOKS + "@hookimpl\ndef proctor_model_providers(context): return []"))

    with pytest.raises(UsageError, match=r"[^.]\. Details: "):
        plugins.get("model_providers", "acme")


def test_the_program_lives_with_all_of_them_installed(put: Callable[..., list[Path]], broken: tuple[str, ...]) -> None:
    paths = [str(path) for path in put("good", *broken)]
    code = "from proctor import plugins; import json; plugins.startup(); print(json.dumps(plugins.names('displays')))"
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}

    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) >= {"none", "plain", "rich"}

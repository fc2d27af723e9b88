"""The doctor examines each plugin in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.contracts import UsageError
from proctor.plugins import Code, Diagnosis
from proctor.plugins import _doctor as doctor
from proctor.plugins._manager import Manager


def by_name(found: list[Diagnosis]) -> dict[str, Diagnosis]:
    return {diagnosis.distribution: diagnosis for diagnosis in found}


def codes(diagnosis: Diagnosis) -> set[Code]:
    return {fault.code for fault in diagnosis.faults}


def test_each_broken_plugin_has_its_code_and_the_sound_one_none(
    manager: Callable[..., Manager], broken: tuple[str, ...]
) -> None:
    found = by_name(manager("good", *broken, disabled=["broken-name-taken:acme"]).diagnose())

    assert codes(found["broken-import-error"]) == {Code.IMPORT_ERROR}
    assert codes(found["broken-system-exit"]) == {Code.IMPORT_EXIT}
    assert codes(found["broken-unknown-hook"]) == {Code.UNKNOWN_HOOK}
    assert codes(found["broken-wrong-core"]) == {Code.CORE_VERSION}
    assert codes(found["acme-good"]) <= {Code.SLOW_IMPORT}  # on a machine that is busy enough
    (module,) = found["acme-good"].modules
    assert module.records == {"model_providers": ("acme",), "sandbox_providers": ("acme",)}
    assert module.pulled_in == ()


def test_a_plugin_for_another_core_is_not_even_imported_there(manager: Callable[..., Manager]) -> None:
    (diagnosis,) = manager("wrong_core").diagnose()

    assert [module.seconds for module in diagnosis.modules] == [None]


def test_a_taken_name_is_told_of_both(manager: Callable[..., Manager]) -> None:
    found = by_name(manager("good", "name_taken").diagnose())

    assert Code.NAME_TAKEN in codes(found["acme-good"])
    assert Code.NAME_TAKEN in codes(found["broken-name-taken"])


def test_what_an_import_pulls_in_is_named(manager: Callable[..., Manager], distribution: Callable[..., Path]) -> None:
    vendor = distribution("vendor-sdk", entries={"console_scripts": {"vendor": "vendor_sdk:main"}})
    root = distribution(
        "acme-heavy",
        """
        import json

        import pluggy
        import vendor_sdk
        from proctor.contracts import ModelProvider
        from proctor.hookspecs import hookimpl

        @hookimpl
        def proctor_model_providers():
            return [ModelProvider(name="acme", factory=print)]
        """,
    )

    (diagnosis,) = manager(vendor, root).diagnose()

    fault = next(fault for fault in diagnosis.faults if fault.code is Code.HEAVY_IMPORT)
    assert diagnosis.modules[0].pulled_in == ("vendor_sdk",)
    assert "Import them in the factory" in fault.message
    assert fault.severity == "warning"


def test_a_slow_import_names_what_is_slow(
    manager: Callable[..., Manager], distribution: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor = distribution("vendor-sdk", entries={"console_scripts": {"vendor": "vendor_sdk:main"}})
    body = "import vendor_sdk\nfrom proctor.hookspecs import hookimpl\n@hookimpl\ndef proctor_displays(): return []"
    monkeypatch.setattr(doctor, "IMPORT_BUDGET", 0.0)

    (diagnosis,) = manager(vendor, distribution("acme-slow", body)).diagnose()

    fault = next(fault for fault in diagnosis.faults if fault.code is Code.SLOW_IMPORT)
    assert "vendor_sdk" in dict(diagnosis.modules[0].slowest)
    assert "vendor_sdk" in fault.message


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("import os; os._exit(9)", Code.IMPORT_CRASH),
        ("import ctypes; ctypes.string_at(0)", Code.IMPORT_CRASH),
        ("print('noise'); raise ValueError('bad')", Code.IMPORT_ERROR),
        ("import sys; sys.stdout.close()", Code.IMPORT_CRASH),
    ],
)
def test_a_crash_is_a_finding(
    manager: Callable[..., Manager], distribution: Callable[..., Path], body: str, code: Code
) -> None:
    found = by_name(manager("good", distribution("acme-crash", body), disabled=["acme-good:acme"]).diagnose())

    assert code in codes(found["acme-crash"])


def test_an_import_that_does_not_end_is_a_finding(
    manager: Callable[..., Manager], distribution: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "TIMEOUT", 1.5)

    (diagnosis,) = manager(distribution("acme-hang", "import threading\nthreading.Event().wait()")).diagnose()

    assert codes(diagnosis) == {Code.IMPORT_TIMEOUT}


def test_records_and_entry_points_that_do_not_agree_are_told(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    body = """
        from proctor.contracts import DisplayProvider
        from proctor.hookspecs import hookimpl

        @hookimpl
        def proctor_displays():
            return [DisplayProvider(name="given", factory=print)]

        def proctor_observers():
            return []
        """
    entries = {"proctor.displays": {"asked": "acme_other.hooks"}, "proctor.observers": {"o": "acme_other.hooks"}}

    (diagnosis,) = manager(distribution("acme-other", body, entries=entries)).diagnose()

    told = {(fault.code, fault.name): fault.message for fault in diagnosis.faults}
    assert "returns no record of that name" in told[Code.NO_RECORD, "asked"]
    assert "not decorated" in told[Code.NO_RECORD, "o"]
    assert (Code.UNDECLARED_RECORD, "given") in told


def test_startup_hooks_and_factories_are_not_called(
    manager: Callable[..., Manager], distribution: Callable[..., Path], tmp_path: Path
) -> None:
    body = f"""
        from proctor.contracts import DisplayProvider
        from proctor.hookspecs import hookimpl

        def act(*args):
            open({str(tmp_path / "acted")!r}, "w").close()

        @hookimpl
        def proctor_startup(context):
            act()

        @hookimpl
        def proctor_displays():
            return [DisplayProvider(name="acme", factory=act)]
        """
    module = "acme_start.hooks"
    entries = {"proctor.startup": {"acme": module}, "proctor.displays": {"acme": module}}

    (diagnosis,) = manager(distribution("acme-start", body, entries=entries)).diagnose()

    assert codes(diagnosis) <= {Code.SLOW_IMPORT}
    assert not (tmp_path / "acted").exists()


def test_requirements_that_are_not_met_are_told(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    requires = ("vendor-nobody-has>=2", "pluggy>=99", "other-nobody-has; extra == 'fast'", "x; python_version < '3'")

    (diagnosis,) = manager(distribution("acme-needs", requires=requires)).diagnose()

    missing = [fault.message for fault in diagnosis.faults if fault.code is Code.MISSING_REQUIREMENT]
    assert any(
        "vendor-nobody-has>=2, which is not installed: `pip install 'vendor-nobody-has>=2'`." in message
        for message in missing
    )
    assert any("pluggy>=99, and " in message for message in missing)
    assert len(missing) == 2
    assert diagnosis.missing_extras == {"fast": ("other-nobody-has",)}
    assert Code.NO_CORE_REQUIREMENT in codes(diagnosis)


def test_what_is_switched_off_is_not_imported(manager: Callable[..., Manager]) -> None:
    (diagnosis,) = manager("system_exit", disabled=["broken-system-exit"]).diagnose()

    assert diagnosis.disabled
    assert diagnosis.faults == ()


def test_a_plugin_file_is_examined_too(manager: Callable[..., Manager], tmp_path: Path) -> None:
    file = tmp_path / "acme_file.py"
    file.write_text("from proctor.hookspecs import hookimpl\n@hookimpl\ndef proctor_startup(context): pass\n")

    (diagnosis,) = manager(extra=[str(file)]).diagnose()

    assert diagnosis.distribution == str(file)
    assert codes(diagnosis) <= {Code.SLOW_IMPORT}
    assert diagnosis.modules[0].seconds is not None


def test_only_those_asked_for_are_examined(manager: Callable[..., Manager]) -> None:
    plugins = manager("good", "import_error")

    assert [diagnosis.distribution for diagnosis in plugins.diagnose(["ACME_good"])] == ["acme-good"]
    with pytest.raises(UsageError, match="Did you mean 'acme-good'"):
        plugins.diagnose(["acme-god"])

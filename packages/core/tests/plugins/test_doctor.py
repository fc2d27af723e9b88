"""The doctor examines each plugin in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.contracts import UsageError
from proctor.plugins import Code, Diagnosis, _slow
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


STARTING = """
from proctor.contracts import DisplayProvider
from proctor.hookspecs import hookimpl

def act(*args):
    {factory}

@hookimpl
def proctor_startup(context):
    {startup}

@hookimpl
def proctor_displays():
    return [DisplayProvider(name="acme", factory=act)]
"""


def test_factories_are_not_called(
    manager: Callable[..., Manager], distribution: Callable[..., Path], tmp_path: Path
) -> None:
    body = STARTING.format(factory=f"open({str(tmp_path / 'acted')!r}, 'w').close()", startup="pass")
    entries = {"proctor.displays": {"acme": "acme_start.hooks"}}

    (diagnosis,) = manager(distribution("acme-start", body, entries=entries)).diagnose()

    assert codes(diagnosis) <= {Code.SLOW_IMPORT}
    assert not (tmp_path / "acted").exists()


@pytest.mark.parametrize(
    ("startup", "text"),
    [
        ("raise RuntimeError('no finder')", "raised RuntimeError: no finder"),
        ("raise SystemExit(0)", "raised SystemExit"),
        ("import os; os._exit(7)", "ended the process, with exit code 7"),
        ("import threading; threading.Event().wait()", "did not end within"),
    ],
)
def test_a_startup_hook_that_fails_is_told(
    manager: Callable[..., Manager],
    distribution: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    startup: str,
    text: str,
) -> None:
    if "wait" in startup:
        monkeypatch.setattr(doctor, "TIMEOUT", 8.0)
    body = STARTING.format(factory="pass", startup=startup)
    entries = {"proctor.startup": {"acme": "acme_start.hooks"}, "proctor.displays": {"acme": "acme_start.hooks"}}

    (diagnosis,) = manager(distribution("acme-start", body, entries=entries)).diagnose()

    fault = next(fault for fault in diagnosis.faults if fault.code is Code.HOOK_RAISED)
    assert "proctor_startup of acme-start 1.0" in fault.message
    assert text in fault.message
    assert fault.severity == "error"
    assert diagnosis.modules[0].records == {"displays": ("acme",)}


def test_a_startup_hook_that_no_run_calls_is_not_called_either(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    body = STARTING.format(factory="pass", startup="raise RuntimeError")
    entries = {"proctor.displays": {"acme": "acme_start.hooks"}}

    (diagnosis,) = manager(distribution("acme-start", body, entries=entries)).diagnose()

    assert Code.HOOK_RAISED not in codes(diagnosis)


@pytest.mark.parametrize(
    ("group", "value", "code"),
    [
        ("proctor.model_providers", "not a module!!", Code.BAD_ENTRY),
        ("proctor.model_providers", "acme_bad.hooks:nothing", Code.BAD_ENTRY),
        ("proctor.model_provider", "acme_bad.hooks", Code.UNKNOWN_GROUP),
    ],
)
def test_a_distribution_whose_only_entry_says_nothing_is_known(
    manager: Callable[..., Manager], distribution: Callable[..., Path], group: str, value: str, code: Code
) -> None:
    plugins = manager(distribution("acme-bad", entries={group: {"badentry": value}}))

    (diagnosis,) = plugins.diagnose(["acme-bad"])
    (named,), (owned,) = plugins.describe("badentry"), plugins.describe("acme-bad")

    assert codes(diagnosis) == {code}
    assert named == owned
    assert named.info.fault is not None
    assert named.info.fault.code is code
    assert named.info.state == "broken"
    assert named.info.version == "1.0"


def test_what_is_asked_for_and_badly_entered_shows_its_fault(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    entries = {"proctor.model_providers": {"badentry": "not a module!!"}}

    with pytest.raises(UsageError, match="'badentry' as 'not a module!!'"):
        manager(distribution("acme-bad", entries=entries)).get("model_providers", "badentry")


@pytest.mark.parametrize(
    ("body", "codes_told"),
    [("", set()), ("1 / 0", {Code.IMPORT_ERROR}), ("raise SystemExit(0)", {Code.IMPORT_EXIT})],
)
def test_a_package_of_tasks_that_can_t_be_imported_is_told(
    manager: Callable[..., Manager], distribution: Callable[..., Path], body: str, codes_told: set[Code]
) -> None:
    root = distribution("acme-tasks", body, entries={"proctor.tasks": {"acme": "acme_tasks.hooks"}})

    (diagnosis,) = manager(root).diagnose()

    assert codes(diagnosis) == codes_told
    assert diagnosis.modules[0].records == {"tasks": ("acme",)}


COUNTED = """
import time
with open({count!r}, "a") as file:
    file.write("x")
{work}
from proctor.hookspecs import hookimpl
@hookimpl
def proctor_model_providers(): return []
"""


def test_what_surely_takes_long_is_imported_once_and_said_meanwhile(
    manager: Callable[..., Manager], distribution: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_slow, "PATIENCE", 0.05)
    said: list[str] = []
    count = tmp_path / "count"
    root = distribution("acme-slow", COUNTED.format(count=str(count), work="time.sleep(0.9)"))

    (diagnosis,) = manager(root).diagnose(say=said.append)

    assert count.read_text() == "x"
    assert Code.SLOW_IMPORT in codes(diagnosis)
    assert said == ["Still importing acme_slow.hooks of acme-slow 1.0; it has 30 s."]


def test_an_import_that_a_busy_machine_keeps_waiting_is_not_slow(
    manager: Callable[..., Manager], distribution: Callable[..., Path], tmp_path: Path
) -> None:
    body = COUNTED.format(count=str(tmp_path / "count"), work="time.sleep(0.1)")

    (diagnosis,) = manager(distribution("acme-waits", body)).diagnose()

    seconds = diagnosis.modules[0].seconds
    assert seconds is not None
    assert seconds < 0.1


def test_the_core_is_never_called_slow(
    manager: Callable[..., Manager], distribution: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "IMPORT_BUDGET", 0.0)
    body = "from proctor.hookspecs import hookimpl\n@hookimpl\ndef proctor_displays(): return []"
    root = distribution(
        "proctor-core", body, package="acme_core", entries={"proctor.displays": {"a": "acme_core.hooks"}}
    )

    (diagnosis,) = manager(root).diagnose()

    assert Code.SLOW_IMPORT not in codes(diagnosis)


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

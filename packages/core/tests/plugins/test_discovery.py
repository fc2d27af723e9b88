"""What the environment offers is known without importing it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest

from proctor import plugins as room
from proctor.cli._root import _BUILT_IN
from proctor.contracts import UsageError
from proctor.plugins import Code
from proctor.plugins._manager import Manager
from proctor.plugins._scan import Scan, scan


def test_the_built_ins_are_found_as_outsiders_are() -> None:
    found = {(info.kind, info.name): info for info in room.inventory() if info.distribution == "proctor-core"}

    assert {name for kind, name in found if kind == "displays"} == {"none", "plain", "rich"}
    assert {name for kind, name in found if kind == "log_stores"} == {"file", "memory"}
    assert found["model_providers", "mock"].module == found["sandbox_providers", "local"].module == "proctor._builtins"


def test_the_module_of_a_component_is_imported_when_it_is_asked_for_and_its_sdk_is_not(
    manager: Callable[..., Manager],
) -> None:
    plugins = manager("good", "import_error")
    assert plugins.names("model_providers") == ["acme", "unimportable"]
    assert "acme_good" not in sys.modules

    provider = plugins.get("model_providers", "acme")

    assert "acme_good.hooks" in sys.modules
    assert "acme_good.sdk" not in sys.modules
    provider.factory("small", base_url=None, api_key=None, config=None, args=None)
    assert "acme_good.sdk" in sys.modules


def test_threads_that_ask_together_get_one_record(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    body = """
        from proctor.contracts import DisplayProvider
        from proctor.hookspecs import hookimpl

        calls = []

        @hookimpl
        def proctor_displays():
            calls.append(1)
            return [DisplayProvider(name="acme", factory=lambda args: calls)]
        """
    plugins = manager(distribution("acme-once", body, entries={"proctor.displays": {"acme": "acme_once.hooks"}}))
    together = threading.Barrier(8)

    def ask(_: int) -> object:
        together.wait()
        return plugins.get("displays", "acme")

    with ThreadPoolExecutor(8) as threads:
        records = list(threads.map(ask, range(8)))

    assert all(record is records[0] for record in records)
    assert records[0].factory(None) == [1]  # type: ignore[attr-defined]


def test_the_environment_is_read_once(put: Callable[..., list[Path]]) -> None:
    paths = [str(path) for path in put("good")]
    scans: list[Scan] = []

    def scanner() -> Scan:
        scans.append(scan(metadata.distributions(path=paths)))
        return scans[-1]

    plugins = Manager(scanner=scanner, environ={})
    plugins.inventory()
    plugins.get("model_providers", "acme")
    plugins.names("displays")
    plugins.faults()

    assert len(scans) == 1


def test_what_is_installed_while_the_program_runs_is_found(
    put: Callable[..., list[Path]], distribution: Callable[..., Path]
) -> None:
    paths = [str(path) for path in put("good")]
    plugins = Manager(scanner=lambda: scan(metadata.distributions(path=paths)), environ={})
    assert plugins.names("model_providers") == ["acme"]

    paths += [str(path) for path in put("name_taken")]

    assert plugins.get("model_providers", "other-acme").name == "other-acme"


def test_a_distribution_seen_by_two_roads_is_one(
    manager: Callable[..., Manager], distribution: Callable[..., Path], tmp_path: Path
) -> None:
    real = distribution("acme-linked", "")
    (tmp_path / "lib64").symlink_to(real)

    plugins = manager(real, tmp_path / "lib64", real)

    assert [info.name for info in plugins.inventory()] == ["acme"]
    assert plugins.faults() == []


def test_of_two_versions_of_a_distribution_the_first_on_the_path_counts(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    new, old = distribution("acme-twice", version="2.0"), distribution("acme-twice", version="1.0")

    plugins = manager(new, old)

    assert [info.version for info in plugins.inventory()] == ["2.0"]
    (fault,) = plugins.faults()
    assert fault.code is Code.SHADOWED
    assert str(old) in fault.message


def test_a_first_version_without_entry_points_hides_a_second_with_them(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    new, old = distribution("acme-bare", version="2.0"), distribution("acme-bare", version="1.0")
    next(new.glob("*.dist-info/entry_points.txt")).unlink()

    plugins = manager(new, old)

    assert plugins.inventory() == []


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("METADATA", "Metadata-Version: 2.1\n\n"),
        ("entry_points.txt", "[proctor.model_providers]\nno equals sign\n"),
    ],
)
def test_damaged_metadata_hides_nothing_else(
    manager: Callable[..., Manager], distribution: Callable[..., Path], file: str, content: str
) -> None:
    root = distribution("acme-damaged")
    next(root.glob(f"*.dist-info/{file}")).write_text(content)

    plugins = manager("good", root)

    assert "acme" in plugins.names("model_providers")
    assert [info.distribution for info in plugins.inventory()] == ["acme-good", "acme-good"]


def test_bytes_that_are_no_text_hide_nothing_else(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    root = distribution("acme-bytes")
    next(root.glob("*.dist-info/entry_points.txt")).write_bytes(b"[proctor.displays]\n\xff\xfe = x\n")

    plugins = manager("good", root)

    assert [fault.code for fault in plugins.faults()] == [Code.BAD_METADATA]
    assert plugins.names("model_providers") == ["acme"]


def test_an_entry_that_names_no_module_is_told(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    plugins = manager(distribution("acme-attr", entries={"proctor.displays": {"acme": "acme_attr.hooks:Display"}}))

    (fault,) = plugins.faults()

    assert fault.code is Code.BAD_ENTRY
    assert "'acme_attr.hooks:Display'" in fault.message


@pytest.mark.parametrize("name", ["a/b", "a:b", "a,b", "two words"])
def test_a_name_that_nobody_could_ask_for_is_told(
    manager: Callable[..., Manager], distribution: Callable[..., Path], name: str
) -> None:
    plugins = manager(distribution("acme-name", entries={"proctor.displays": {name: "acme_name.hooks"}}))

    assert plugins.inventory() == []
    assert {fault.code for fault in plugins.faults()} == {Code.BAD_ENTRY}


def test_a_command_of_the_core_can_not_be_replaced(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    plugins = manager(distribution("acme-eval", entries={"proctor.commands": {"eval": "acme_eval.hooks"}}))

    with pytest.raises(UsageError, match="is the core's own"):
        plugins.get("commands", "eval")
    assert [fault.code for fault in plugins.faults()] == [Code.NAME_TAKEN]


def test_the_core_keeps_the_names_of_its_own_commands() -> None:
    assert set(_BUILT_IN) == room.KINDS["commands"].reserved


def test_a_mistyped_group_is_told(manager: Callable[..., Manager], distribution: Callable[..., Path]) -> None:
    plugins = manager(distribution("acme-group", entries={"proctor.model_provider": {"acme": "acme_group.hooks"}}))

    (fault,) = plugins.faults()

    assert fault.code is Code.UNKNOWN_GROUP
    assert "Did you mean 'proctor.model_providers'?" in fault.message


def test_a_task_package_is_named_without_being_imported(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    plugins = manager(distribution("acme-tasks", entries={"proctor.tasks": {"acme": "acme_tasks"}}))

    assert plugins.get("tasks", "acme").package == "acme_tasks"
    assert "acme_tasks" not in sys.modules


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("model_providers", "acmee", "Did you mean 'acme'?"),
        ("model_providers", "qwertz", "Installed: acme."),
        (
            "model_providers",
            "bedrock",
            "comes with proctor-provider-bedrock: `pip install --upgrade proctor-provider-bedrock`.",
        ),
        ("model_providers", "bedrok", "Did you mean 'bedrock'?"),
        ("sandbox_providers", "docker", "pip install --upgrade proctor-sandbox-docker"),
        ("log_stores", "s3", "pip install --upgrade proctor-log-s3"),
        ("runners", "slurm", "pip install --upgrade proctor-runner-slurm"),
        ("displays", "qwertz", "None is installed: see `proctor plugins`."),
        ("displais", "rich", "Did you mean 'displays'?"),
    ],
)
def test_an_unknown_name_says_what_would_provide_it(
    manager: Callable[..., Manager], kind: str, name: str, text: str
) -> None:
    with pytest.raises(UsageError) as raised:
        manager("good").get(kind, name)

    assert text in str(raised.value)


def test_what_took_part_is_remembered(manager: Callable[..., Manager]) -> None:
    plugins = manager("good", "name_taken")
    assert plugins.used() == {}

    plugins.get("model_providers", "other-acme")

    assert plugins.used() == {"broken-name-taken": "0.7.0"}
    assert plugins.origin("sandbox_providers", "acme") == ("acme-good", "1.2.0")

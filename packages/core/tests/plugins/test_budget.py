"""The contract costs nothing to import, and the core's own hooks module keeps the budget of every plugin's."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {
    "aiohttp",
    "anyio",
    "click",
    "httpx",
    "httpx2",
    "openai",
    "pydantic",
    "pydantic_core",
    "rich",
    "trio",
    "yaml",
    "zstandard",
}
SAY = "import json, sys; print(json.dumps(sorted(sys.modules)))"


def imported(code: str) -> set[str]:
    command = [sys.executable, "-c", f"{code}\n{SAY}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return set(json.loads(done.stdout))


def third_party(modules: set[str]) -> set[str]:
    tops = {name.partition(".")[0] for name in modules}
    # What site and .pth files of an environment load is there before the first line runs.
    return tops - {name.partition(".")[0] for name in imported("")} - set(sys.stdlib_module_names)


def test_the_hook_specifications_need_pluggy_only() -> None:
    assert third_party(imported("import proctor.hookspecs")) == {"proctor", "pluggy"}


def test_every_record_can_be_had_without_a_third_party() -> None:
    code = (
        "from proctor.contracts import ModelProvider, SandboxProvider, UsageError, Observer, StartupContext, MockArgs"
    )

    assert third_party(imported(code)) == {"proctor"}


@pytest.mark.parametrize("module", ["proctor._builtins", "proctor.plugins"])
def test_no_heavy_module_comes_with(module: str) -> None:
    assert third_party(imported(f"import {module}")) <= {"proctor", "pluggy"}


def test_listing_all_plugins_imports_none_of_them() -> None:
    modules = imported("from proctor import plugins\nplugins.inventory()")

    assert not HEAVY & modules
    assert "proctor._builtins" not in modules


def test_a_built_in_record_comes_without_its_room() -> None:
    modules = imported("from proctor import plugins\nplugins.get('model_providers', 'mock')")

    assert not HEAVY & modules
    assert "proctor.model" not in modules

"""A plugin is installed, and its SDK or its key is not: what a person reads who runs an evaluation with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from proctor.plugins._missing import what_is_missing
from proctor.plugins._scan import Source

HOOKS = """
from proctor.contracts import ModelProvider
from proctor.hookspecs import hookimpl

def make(name, **settings):
    import acme_sdk.client

@hookimpl
def proctor_model_providers():
    return [ModelProvider(name="acme", factory=make, env=(("ACME_API_KEY",), ("ACME_ID", "ACME_PASSWORD")))]
"""
QUIZ = """
from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes

@task
def quiz():
    return Task(dataset=[Sample(input="1 + 1?", target="2")], scorer=includes())
"""


@pytest.fixture
def evaluate(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    (tmp_path / "quiz.py").write_text(QUIZ)

    def evaluate(plugin: Path, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "proctor", "eval", "quiz.py", "--model", "acme/small", "--log-dir", "logs"]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ACME_", "PROCTOR_"))}
        path = os.pathsep.join([str(plugin), *(part for part in sys.path if part)])
        return subprocess.run(
            [*command, *options],
            cwd=tmp_path,
            env={**kept, "PYTHONPATH": path, **environ},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return evaluate


def refused(done: subprocess.CompletedProcess[str], tmp_path: Path) -> str:
    """The one paragraph that a refusal is; nothing else was done."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    [paragraph] = done.stderr.strip().splitlines()
    assert paragraph.startswith("Error: ")
    assert not list((tmp_path / "logs").glob("*")) and not done.stdout
    return paragraph


@pytest.mark.slow
@pytest.mark.parametrize(
    ("requires", "command", "backend"),
    [
        (("acme-sdk>=2,<3 ; extra == 'client'",), "`pip install 'acme-provider[client]'`", "asyncio"),
        (("acme_sdk>=2",), "`pip install 'acme_sdk>=2'`", "trio"),
        (("something-else",), "`pip install --upgrade acme-provider`", "asyncio"),
    ],
)
def test_a_missing_sdk_is_named_with_the_command_that_adds_it(
    evaluate: Callable[..., subprocess.CompletedProcess[str]],
    distribution: Callable[..., Path],
    tmp_path: Path,
    requires: Sequence[str],
    command: str,
    backend: str,
) -> None:
    plugin = distribution("acme-provider", HOOKS, requires=("proctor-core>=0.1", *requires))

    told = refused(evaluate(plugin, "--async-backend", backend, ACME_API_KEY="key-1234"), tmp_path)

    assert "'acme_sdk'" in told and "'acme' of acme-provider 1.0" in told and command in told
    assert "key-1234" not in told


def test_a_hooks_module_that_imports_a_missing_sdk_says_the_same(
    evaluate: Callable[..., subprocess.CompletedProcess[str]], distribution: Callable[..., Path], tmp_path: Path
) -> None:
    requires = ("proctor-core>=0.1", "acme-sdk; extra == 'client'")
    plugin = distribution("acme-provider", f"import acme_sdk\n{HOOKS}", requires=requires)

    told = refused(evaluate(plugin, ACME_API_KEY="key-1234"), tmp_path)

    assert "'acme_sdk'" in told and "`pip install 'acme-provider[client]'`" in told


def test_a_missing_key_is_told_before_the_sdk_is_looked_for(
    evaluate: Callable[..., subprocess.CompletedProcess[str]], distribution: Callable[..., Path], tmp_path: Path
) -> None:
    told = refused(evaluate(distribution("acme-provider", HOOKS), ACME_ID="me"), tmp_path)

    assert "'acme' needs ACME_API_KEY, or ACME_PASSWORD in the environment" in told
    assert "export ACME_API_KEY=..." in told


@pytest.mark.parametrize(
    ("missing", "requires", "command"),
    [
        ("azure.identity", ["azure-core", "azure-identity>=1.17,<2; extra == 'azure'"], "pip install 'acme[azure]'"),
        ("azure", ["azure-identity"], "pip install 'azure-identity'"),
        ("boto3", ["boto3>=1.30"], "pip install 'boto3>=1.30'"),
        ("yaml", ["not a requirement!", "pyyaml"], "pip install 'pyyaml'"),
        ("dateutil", ["python-dateutil"], "pip install 'python-dateutil'"),
        ("cv2", ["opencv-python"], "pip install --upgrade acme"),
    ],
)
def test_the_requirement_that_brings_a_module(missing: str, requires: list[str], command: str) -> None:
    error = ModuleNotFoundError(f"No module named {missing!r}", name=missing)
    told = what_is_missing(error, "acme_plugin.hooks", Source("acme", "1.0", tuple(requires)))
    assert told == f"needs the Python package {missing!r}, which is not installed: `{command}`."


def test_what_is_broken_rather_than_missing_is_reinstalled() -> None:
    source = Source("acme", "1.0")
    own = ModuleNotFoundError("No module named 'acme_plugin.sdk'", name="acme_plugin.sdk")
    assert "lacks a part of itself" in what_is_missing(own, "acme_plugin.hooks", source)
    library = ImportError("libcuda.so: cannot open shared object file", name="acme_sdk")
    told = what_is_missing(library, "acme_plugin.hooks", source)
    assert "libcuda.so" in told and told.endswith("`pip install --force-reinstall acme`.")


def test_a_plugin_that_is_a_file_has_no_requirements_to_look_at() -> None:
    error = ModuleNotFoundError("No module named 'acme_sdk'", name="acme_sdk")
    told = what_is_missing(error, "mine.py", Source("mine.py", "", packaged=False))
    assert told.endswith("`pip install acme_sdk`.")

"""The provider before a model is loaded: its record, its arguments, and what it refuses."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from proctor import plugins
from proctor.contracts import PrerequisiteError, UsageError
from proctor.model import GenerateConfig, get_model
from proctor_provider_llamacpp import LlamaArgs, _engine
from proctor_provider_llamacpp._api import LlamaAPI
from proctor_provider_llamacpp._engine import EngineKey, llamacpp, shared_engine
from proctor_provider_llamacpp._reply import LlamaError

pytestmark = pytest.mark.anyio


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """What looks like a GGUF file until it is loaded."""
    path = tmp_path / "damaged.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00" + bytes(range(256)) * 16)
    return path


def test_its_record_has_one_connection_for_each_slot_and_no_controller() -> None:
    record = plugins.get("model_providers", "llamacpp")

    assert record.max_connections == LlamaArgs().n_parallel
    assert not record.adaptive
    assert set(record.backends) == {"asyncio", "trio"}


def test_its_hooks_import_neither_the_library_nor_pydantic() -> None:
    code = "import sys, proctor_provider_llamacpp.hooks; print(*{'xllamacpp', 'pydantic'} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.strip() == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n_ctx": "8"}, "n_ctx must be at least 32"),
        ({"n_parallel": 0}, "n_parallel must be at least 1"),
        ({"n_threads": 0}, "n_threads must be at least 1"),
        ({"n_gpu_layers": -2}, "n_gpu_layers must be at least -1"),
        ({"context": 1}, "no argument 'context'"),
    ],
)
def test_bad_arguments_are_refused_with_their_name(file: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        get_model(f"llamacpp/{file}", memoize=False, **given)


def test_a_base_url_is_refused(file: Path) -> None:
    with pytest.raises(UsageError, match="no address"):
        get_model(f"llamacpp/{file}", memoize=False, base_url="http://127.0.0.1:1")


def test_models_of_one_file_and_the_same_arguments_share_a_gate(file: Path) -> None:
    def key(**args: Any) -> str:
        return LlamaAPI(str(file), args=LlamaArgs(**args)).connection_key()

    assert key() == key()
    assert key() != key(n_parallel=2)


def test_another_number_of_slots_is_another_number_of_connections(file: Path) -> None:
    assert get_model(f"llamacpp/{file}", memoize=False).config.max_connections is None
    assert get_model(f"llamacpp/{file}", memoize=False, n_parallel=7).config.max_connections == 7


def test_a_key_is_a_file_and_how_it_is_loaded(file: Path) -> None:
    args = LlamaArgs(n_ctx=64, n_threads=2)

    assert EngineKey.of(file, args, None) == EngineKey.of(file, LlamaArgs(n_ctx=64, n_threads=2), None)
    assert EngineKey.of(file, args, None) != EngineKey.of(file, args, "{{ messages }}")


def test_a_model_may_be_collected_while_another_thread_looks_for_its_engine(file: Path) -> None:
    # A finalizer that took the registry's lock would wait here for ever: the collector runs in any thread, at any time.
    api = LlamaAPI(str(file))
    api._shared = shared_engine(api._key)

    with _engine._registry:
        del api
        gc.collect()

    assert not _engine._shared


async def test_a_damaged_file_is_said_to_be_so_and_is_not_tried_again(file: Path) -> None:
    model = get_model(f"llamacpp/{file}", memoize=False)

    with pytest.raises(UsageError, match=r"cannot load .*damaged\.gguf.*PROCTOR_LLAMACPP_VERBOSE=1") as raised:
        await model.generate("Hello")

    assert model.api.classify(raised.value).kind == "permanent"
    await model.api.aclose()


@pytest.mark.parametrize(
    "error", [LlamaError("refused", "invalid_request_error"), LlamaError("busy", "unavailable_error")]
)
async def test_a_failure_is_one_call_whatever_the_retries(
    file: Path, monkeypatch: pytest.MonkeyPatch, error: LlamaError
) -> None:
    # There is no server that could have had a bad moment: the same process would do the same again.
    model = get_model(f"llamacpp/{file}", memoize=False)
    calls = []

    def fail(*arguments: Any) -> Any:
        calls.append(arguments)
        raise error

    monkeypatch.setattr(model.api, "_run", fail)
    with pytest.raises(LlamaError):
        await model.generate("Hello", config=GenerateConfig(max_retries=3))

    assert len(calls) == 1
    assert model.retries == {}
    assert model.last_error == f"LlamaError: {error}"


def test_without_the_library_it_says_how_to_install_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)

    with pytest.raises(PrerequisiteError, match="pip install xllamacpp"):
        get_model(f"llamacpp/{file}", memoize=False)


@pytest.mark.parametrize("before", [None, "ACTIVE"])
def test_the_wait_policy_of_its_threads_is_not_left_to_child_processes(
    monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    if before is None:
        monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    else:
        monkeypatch.setenv("OMP_WAIT_POLICY", before)

    llamacpp()

    assert os.environ.get("OMP_WAIT_POLICY") == before

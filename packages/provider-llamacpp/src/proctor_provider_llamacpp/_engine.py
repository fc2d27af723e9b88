"""A model in memory: loaded once for all who ask for it, called from any thread, freed with its last user."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from proctor.concurrency import cpu_budget
from proctor.contracts import PrerequisiteError, UsageError
from proctor_provider_llamacpp._args import LlamaArgs

__all__ = ["Engine", "EngineKey", "SharedEngine", "llamacpp", "shared_engine"]

VERBOSE = "PROCTOR_LLAMACPP_VERBOSE"
_SOCKET_PATH_MAX = 100  # a sockaddr_un holds 108 bytes on Linux, 104 on macOS


def llamacpp() -> Any:
    """The module ``xllamacpp``.

    Raises:
        PrerequisiteError: if it is not installed, or not for this machine.
    """
    # Threads that wait in a spin loop cost up to ten times the run time as soon as anything else wants a core (and an
    # evaluation always does). OpenMP reads this once, when it is loaded; child processes need not inherit it.
    ours = "OMP_WAIT_POLICY" not in os.environ
    if ours:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    try:
        import xllamacpp
    except ImportError as error:
        raise PrerequisiteError(
            f"llamacpp models need the package xllamacpp, which cannot be imported ({error}). "
            "Install it with: pip install xllamacpp"
        ) from None
    finally:
        if ours:
            os.environ.pop("OMP_WAIT_POLICY", None)
    return xllamacpp


@dataclass(frozen=True, slots=True)
class EngineKey:
    """What makes two models one: the file, and how it is loaded. ``template``: Jinja, None for the file's own."""

    path: Path
    n_ctx: int
    n_parallel: int
    n_threads: int | None
    n_gpu_layers: int
    flash_attention: bool
    template: str | None

    @classmethod
    def of(cls, path: Path, args: LlamaArgs, template: str | None) -> EngineKey:
        """The key of the file at ``path``, loaded with ``args``."""
        return cls(path, args.n_ctx, args.n_parallel, args.n_threads, args.n_gpu_layers, args.flash_attention, template)


class Engine:
    """One loaded model. Loading blocks for as long as reading the file takes, and holds Python's global lock meanwhile.

    Raises:
        UsageError: if llama.cpp cannot load the file.
    """

    def __init__(self, key: EngineKey) -> None:
        lib = llamacpp()
        with _private_address() as address:
            params = _params(lib, key, address)
            try:
                self._server = lib.Server(params)
            except (RuntimeError, ValueError) as error:
                raise UsageError(
                    f"llama.cpp cannot load {key.path} with n_ctx={key.n_ctx}, n_parallel={key.n_parallel} ({error}). "
                    f"The file may be damaged, of a newer format, or too large for this machine; set {VERBOSE}=1 to "
                    "see llama.cpp's own messages."
                ) from None

    def chat(self, request: dict[str, Any], on_chunk: Callable[[dict[str, Any]], bool]) -> None:
        """Run one streamed chat completion in this thread.

        Args:
            request: as for OpenAI's chat completions.
            on_chunk: called with each chunk, errors included; it returns True to stop.
        """
        # Lone surrogates, which a dataset may hold, are no JSON: they become question marks.
        body = json.dumps(request, ensure_ascii=False).encode("utf-8", "replace")
        failure: list[BaseException] = []

        def forward(chunk: bytes) -> bool:
            try:
                return on_chunk(json.loads(chunk))
            except BaseException as error:  # an exception cannot cross llama.cpp's frames
                failure.append(error)
                return True

        self._server.handle_chat_completions(body, forward)
        if failure:
            raise failure[0]


def _params(lib: Any, key: EngineKey, address: str) -> Any:
    params = lib.CommonParams()
    params.model.path = str(key.path)
    params.n_ctx = key.n_ctx * key.n_parallel  # llama.cpp divides it among its slots
    params.n_parallel = key.n_parallel
    params.n_gpu_layers = key.n_gpu_layers
    params.cache_ram_mib = 0  # copies of old conversations, which an evaluation does not come back to
    params.warmup = False
    params.verbosity = _verbosity()
    # Without flash attention a token is computed alike whatever runs in the other slots, so a seed fixes a text.
    flash = lib.llama_flash_attn_type
    name = "LLAMA_FLASH_ATTN_TYPE_ENABLED" if key.flash_attention else "LLAMA_FLASH_ATTN_TYPE_DISABLED"
    params.flash_attn_type = getattr(flash, name)
    threads = key.n_threads or _threads()
    if threads is not None:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    if key.template is not None:
        params.chat_template = key.template
    # The library listens whether one wants it or not: only where nobody gets in.
    params.ui = False
    params.endpoint_slots = False
    params.api_keys = [secrets.token_urlsafe(32)]
    if hasattr(params, "hostnames"):
        params.hostnames = [address]
    else:
        params.hostname = address
    return params


def _threads() -> int | None:
    """What a container allows, if that is less than the machine has; None leaves the choice to llama.cpp."""
    cpus = cpu_budget().cpus
    return cpus if cpus < (os.cpu_count() or 1) else None


def _verbosity() -> int:
    """llama.cpp's log level: 0 is silence, 3 information, 4 all."""
    said = os.environ.get(VERBOSE, "")
    if said.isdecimal():
        return 3 if said == "1" else int(said)
    return 3 if said else 0


@contextlib.contextmanager
def _private_address() -> Iterator[str]:
    """A socket in a folder of this user's own, gone from the file system as soon as the model is loaded."""
    folder = tempfile.mkdtemp(prefix="proctor-llamacpp-")
    try:
        path = os.path.join(folder, "unused.sock")
        fits = os.name == "posix" and len(os.fsencode(path)) <= _SOCKET_PATH_MAX
        yield path if fits else "127.0.0.1"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class SharedEngine:
    """An engine that all models of one key use. It lives as long as anyone holds it: a model, or a call of one."""

    def __init__(self, key: EngineKey) -> None:
        self._key = key
        self._lock = threading.Lock()
        self._engine: Engine | None = None

    def get(self) -> Engine:
        """The engine; the first who asks loads it, in this thread, and the others wait.

        Raises:
            UsageError: if it cannot be loaded.
        """
        with self._lock:
            if self._engine is None:
                self._engine = Engine(self._key)
            return self._engine


# Weak, so that an engine goes with its last user however that one goes. No finalizer may take the lock: the garbage
# collector could run it in the thread that holds the lock.
_shared: WeakValueDictionary[EngineKey, SharedEngine] = WeakValueDictionary()
_registry = threading.Lock()


def shared_engine(key: EngineKey) -> SharedEngine:
    """The engine of ``key``, not loaded yet unless someone did that."""
    with _registry:
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = SharedEngine(key)
        return found

"""Sandboxes: where the commands of a sample run."""

from proctor.contracts import (
    ExecResult,
    ExecTimeoutError,
    OutputLimitExceededError,
    RunningSandbox,
    SandboxBrokenError,
    SandboxConnection,
    SandboxDriver,
    SandboxEnvironment,
    SandboxOwner,
    SandboxUserUnsupportedError,
)
from proctor.sandbox._context import sandbox, sandbox_context, sandbox_default, sandbox_with
from proctor.sandbox._demand import demand, samples_to_come
from proctor.sandbox._files import SETUP_TIMEOUT, folder_of
from proctor.sandbox._lifecycle import (
    begin_reaping,
    check_sandbox,
    cleanup_sandboxes,
    end_reaping,
    kept_sandboxes,
)
from proctor.sandbox._local import MAX_EXEC_OUTPUT, MAX_READ_FILE, LocalSandbox
from proctor.sandbox._local_driver import LocalSandboxDriver
from proctor.sandbox._owner import sandbox_owner
from proctor.sandbox._run import configure_sandboxes, exec_gates, sandbox_gates, set_max_sandboxes
from proctor.sandbox._sample import sample_sandbox
from proctor.schema import SandboxSpec

__all__ = [
    "MAX_EXEC_OUTPUT",
    "MAX_READ_FILE",
    "SETUP_TIMEOUT",
    "ExecResult",
    "ExecTimeoutError",
    "LocalSandbox",
    "LocalSandboxDriver",
    "OutputLimitExceededError",
    "RunningSandbox",
    "SandboxBrokenError",
    "SandboxConnection",
    "SandboxDriver",
    "SandboxEnvironment",
    "SandboxOwner",
    "SandboxSpec",
    "SandboxUserUnsupportedError",
    "begin_reaping",
    "check_sandbox",
    "cleanup_sandboxes",
    "configure_sandboxes",
    "demand",
    "end_reaping",
    "exec_gates",
    "folder_of",
    "kept_sandboxes",
    "sample_sandbox",
    "samples_to_come",
    "sandbox",
    "sandbox_context",
    "sandbox_default",
    "sandbox_gates",
    "sandbox_owner",
    "sandbox_with",
    "set_max_sandboxes",
]

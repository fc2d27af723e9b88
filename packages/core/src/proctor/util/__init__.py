"""What solvers, tools and scorers reach for beside the model: sandboxes, the store, subprocesses, limits, spans."""

from proctor.concurrency import collect, concurrency, subprocess
from proctor.contracts import (
    ExecResult,
    OutputLimitExceededError,
    SandboxConnection,
    SandboxEnvironment,
    SandboxUserUnsupportedError,
)
from proctor.limits import LimitExceededError, SampleLimits, sample_limits
from proctor.log import Store, StoreModel, span, store, store_as
from proctor.sandbox import sandbox, sandbox_default, sandbox_with
from proctor.schema import JsonValue, SandboxSpec
from proctor.tool import json_schema

__all__ = [
    "ExecResult",
    "JsonValue",
    "LimitExceededError",
    "OutputLimitExceededError",
    "SampleLimits",
    "SandboxConnection",
    "SandboxEnvironment",
    "SandboxSpec",
    "SandboxUserUnsupportedError",
    "Store",
    "StoreModel",
    "collect",
    "concurrency",
    "json_schema",
    "sample_limits",
    "sandbox",
    "sandbox_default",
    "sandbox_with",
    "span",
    "store",
    "store_as",
    "subprocess",
]

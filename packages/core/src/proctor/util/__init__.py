"""What solvers, tools and scorers reach for beside the model: sandboxes, the store, subprocesses, limits, spans."""

from proctor.concurrency import collect, concurrency, subprocess
from proctor.contracts import (
    ExecResult,
    OutputLimitExceededError,
    SandboxConnection,
    SandboxEnvironment,
    SandboxUserUnsupportedError,
)
from proctor.limits import (
    Limit,
    LimitExceededError,
    LimitScope,
    SampleLimits,
    apply_limits,
    cost_limit,
    message_limit,
    sample_limits,
    time_limit,
    token_limit,
    turn_limit,
    working_limit,
)
from proctor.log import Store, StoreModel, span, store, store_as
from proctor.sandbox import sandbox, sandbox_default, sandbox_with
from proctor.schema import JsonValue, SandboxSpec
from proctor.tool import json_schema

__all__ = [
    "ExecResult",
    "JsonValue",
    "Limit",
    "LimitExceededError",
    "LimitScope",
    "OutputLimitExceededError",
    "SampleLimits",
    "SandboxConnection",
    "SandboxEnvironment",
    "SandboxSpec",
    "SandboxUserUnsupportedError",
    "Store",
    "StoreModel",
    "apply_limits",
    "collect",
    "concurrency",
    "cost_limit",
    "json_schema",
    "message_limit",
    "sample_limits",
    "sandbox",
    "sandbox_default",
    "sandbox_with",
    "span",
    "store",
    "store_as",
    "subprocess",
    "time_limit",
    "token_limit",
    "turn_limit",
    "working_limit",
]

"""What two people who never meet must agree on: the records that hooks return, and what components implement."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proctor.contracts._display import (
        Display,
        GateSnapshot,
        MessageLevel,
        MetricSnapshot,
        RunSnapshot,
        SampleSnapshot,
        UnitSnapshot,
        UnitStatus,
    )
    from proctor.contracts._errors import PrerequisiteError, UsageError
    from proctor.contracts._logstore import LogBusyError, LogLease, LogSink, LogStore, Stat
    from proctor.contracts._mock import MockArgs
    from proctor.contracts._model import CallRecord, ModelAPI, RateLimits, Retry, current_call, record_call
    from proctor.contracts._observer import (
        Observer,
        RunEnd,
        RunRow,
        RunStart,
        SampleEnd,
        TaskEnd,
        TaskStart,
        UnitInfo,
    )
    from proctor.contracts._providers import (
        DEFAULT_CONNECTIONS,
        CommandProvider,
        DisplayProvider,
        LogStoreProvider,
        ModelFactory,
        ModelProvider,
        ObserverProvider,
        PartitionerProvider,
        RunnerProvider,
        SandboxProvider,
        TaskPackage,
    )
    from proctor.contracts._sandbox import (
        ExecResult,
        ExecTimeoutError,
        OutputLimitExceededError,
        SandboxBrokenError,
        SandboxConnection,
        SandboxDriver,
        SandboxEnvironment,
        SandboxUserUnsupportedError,
    )
    from proctor.contracts._sandbox_owner import RunningSandbox, SandboxOwner
    from proctor.contracts._startup import StartupContext

__all__ = [
    "DEFAULT_CONNECTIONS",
    "CallRecord",
    "CommandProvider",
    "Display",
    "DisplayProvider",
    "ExecResult",
    "ExecTimeoutError",
    "GateSnapshot",
    "LogBusyError",
    "LogLease",
    "LogSink",
    "LogStore",
    "LogStoreProvider",
    "MessageLevel",
    "MetricSnapshot",
    "MockArgs",
    "ModelAPI",
    "ModelFactory",
    "ModelProvider",
    "Observer",
    "ObserverProvider",
    "OutputLimitExceededError",
    "PartitionerProvider",
    "PrerequisiteError",
    "RateLimits",
    "Retry",
    "RunEnd",
    "RunRow",
    "RunSnapshot",
    "RunStart",
    "RunnerProvider",
    "RunningSandbox",
    "SampleEnd",
    "SampleSnapshot",
    "SandboxBrokenError",
    "SandboxConnection",
    "SandboxDriver",
    "SandboxEnvironment",
    "SandboxOwner",
    "SandboxProvider",
    "SandboxUserUnsupportedError",
    "StartupContext",
    "Stat",
    "TaskEnd",
    "TaskPackage",
    "TaskStart",
    "UnitInfo",
    "UnitSnapshot",
    "UnitStatus",
    "UsageError",
    "current_call",
    "record_call",
]

# A plugin's hooks module needs one record, not every contract: each file is loaded when one of its names is asked for.
_HOME = {
    "Display": "_display",
    "GateSnapshot": "_display",
    "MessageLevel": "_display",
    "MetricSnapshot": "_display",
    "RunSnapshot": "_display",
    "SampleSnapshot": "_display",
    "UnitSnapshot": "_display",
    "UnitStatus": "_display",
    "PrerequisiteError": "_errors",
    "UsageError": "_errors",
    "LogBusyError": "_logstore",
    "LogLease": "_logstore",
    "LogSink": "_logstore",
    "LogStore": "_logstore",
    "Stat": "_logstore",
    "CallRecord": "_model",
    "MockArgs": "_mock",
    "ModelAPI": "_model",
    "RateLimits": "_model",
    "Retry": "_model",
    "current_call": "_model",
    "record_call": "_model",
    "Observer": "_observer",
    "RunEnd": "_observer",
    "RunRow": "_observer",
    "RunStart": "_observer",
    "SampleEnd": "_observer",
    "TaskEnd": "_observer",
    "TaskStart": "_observer",
    "UnitInfo": "_observer",
    "DEFAULT_CONNECTIONS": "_providers",
    "CommandProvider": "_providers",
    "DisplayProvider": "_providers",
    "LogStoreProvider": "_providers",
    "ModelFactory": "_providers",
    "ModelProvider": "_providers",
    "ObserverProvider": "_providers",
    "PartitionerProvider": "_providers",
    "RunnerProvider": "_providers",
    "SandboxProvider": "_providers",
    "TaskPackage": "_providers",
    "ExecResult": "_sandbox",
    "ExecTimeoutError": "_sandbox",
    "OutputLimitExceededError": "_sandbox",
    "SandboxBrokenError": "_sandbox",
    "SandboxConnection": "_sandbox",
    "SandboxDriver": "_sandbox",
    "SandboxEnvironment": "_sandbox",
    "SandboxUserUnsupportedError": "_sandbox",
    "RunningSandbox": "_sandbox_owner",
    "SandboxOwner": "_sandbox_owner",
    "StartupContext": "_startup",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"proctor.contracts.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'proctor.contracts' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

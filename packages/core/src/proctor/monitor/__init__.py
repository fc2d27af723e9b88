"""What a run does and waits for at this moment: operations of samples, the event loop, and the socket that tells."""

from proctor.monitor._activity import (
    Activity,
    Operation,
    OperationKind,
    Running,
    activity,
    begin_activity,
    doing,
    settled,
)
from proctor.monitor._place import Place, awaiting_place
from proctor.monitor._runtime import runtime_dir
from proctor.monitor._socket import RunSocket, ask, has_run_sockets, run_sockets
from proctor.monitor._watchdog import LoopState, LoopWatch, Stall, loop_watch, use_loop_watch

__all__ = [
    "Activity",
    "LoopState",
    "LoopWatch",
    "Operation",
    "OperationKind",
    "Place",
    "RunSocket",
    "Running",
    "Stall",
    "activity",
    "ask",
    "awaiting_place",
    "begin_activity",
    "doing",
    "has_run_sockets",
    "loop_watch",
    "run_sockets",
    "runtime_dir",
    "settled",
    "use_loop_watch",
]

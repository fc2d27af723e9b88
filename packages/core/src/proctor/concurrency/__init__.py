"""What runs at once, and what holds it back: gates, the CPU budget, subprocesses."""

from proctor.concurrency._activity import (
    Activity,
    Operation,
    OperationKind,
    Running,
    activity,
    begin_activity,
    doing,
    settled,
)
from proctor.concurrency._adaptive import AdaptiveController, AdaptiveLimits, AdaptiveState, LimitChange, Token
from proctor.concurrency._collect import collect
from proctor.concurrency._connections import ConnectionPolicy, Connections, Wish
from proctor.concurrency._cpu import CpuBudget, cpu_budget
from proctor.concurrency._detached import Detached, bounded, detached_tasks, left_behind
from proctor.concurrency._gate import Gate
from proctor.concurrency._pacing import PacerState, RequestPacer, Turn
from proctor.concurrency._place import Place, awaiting_place
from proctor.concurrency._run import (
    all_connections,
    concurrency,
    connections,
    gates,
    named_gates,
    run_gates,
    subprocess_gate,
    tend_gates,
    used_subprocess_gate,
)
from proctor.concurrency._socket import RunSocket, ask, has_run_sockets, run_sockets
from proctor.concurrency._subprocess import kill_groups, process_exists, subprocess
from proctor.concurrency._watchdog import LoopState, LoopWatch, Stall, loop_watch, use_loop_watch

__all__ = [
    "Activity",
    "AdaptiveController",
    "AdaptiveLimits",
    "AdaptiveState",
    "ConnectionPolicy",
    "Connections",
    "CpuBudget",
    "Detached",
    "Gate",
    "LimitChange",
    "LoopState",
    "LoopWatch",
    "Operation",
    "OperationKind",
    "PacerState",
    "Place",
    "RequestPacer",
    "RunSocket",
    "Running",
    "Stall",
    "Token",
    "Turn",
    "Wish",
    "activity",
    "all_connections",
    "ask",
    "awaiting_place",
    "begin_activity",
    "bounded",
    "collect",
    "concurrency",
    "connections",
    "cpu_budget",
    "detached_tasks",
    "doing",
    "gates",
    "has_run_sockets",
    "kill_groups",
    "left_behind",
    "loop_watch",
    "named_gates",
    "process_exists",
    "run_gates",
    "run_sockets",
    "settled",
    "subprocess",
    "subprocess_gate",
    "tend_gates",
    "use_loop_watch",
    "used_subprocess_gate",
]

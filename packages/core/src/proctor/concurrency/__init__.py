"""What runs at once, and what holds it back: gates, the CPU budget, subprocesses."""

from proctor.concurrency._adaptive import AdaptiveController, AdaptiveLimits, AdaptiveState, LimitChange, Token
from proctor.concurrency._collect import collect
from proctor.concurrency._connections import ConnectionPolicy, Connections, Wish
from proctor.concurrency._cpu import CpuBudget, cpu_budget
from proctor.concurrency._detached import Detached, bounded, detached_tasks, left_behind, with_detached_tasks
from proctor.concurrency._gate import Gate
from proctor.concurrency._marks import kill_marked, marked_processes, process_environment
from proctor.concurrency._pacing import PacerState, RequestPacer, Turn
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
from proctor.concurrency._subprocess import kill_groups, process_exists, subprocess

__all__ = [
    "AdaptiveController",
    "AdaptiveLimits",
    "AdaptiveState",
    "ConnectionPolicy",
    "Connections",
    "CpuBudget",
    "Detached",
    "Gate",
    "LimitChange",
    "PacerState",
    "RequestPacer",
    "Token",
    "Turn",
    "Wish",
    "all_connections",
    "bounded",
    "collect",
    "concurrency",
    "connections",
    "cpu_budget",
    "detached_tasks",
    "gates",
    "kill_groups",
    "kill_marked",
    "left_behind",
    "marked_processes",
    "named_gates",
    "process_environment",
    "process_exists",
    "run_gates",
    "subprocess",
    "subprocess_gate",
    "tend_gates",
    "used_subprocess_gate",
    "with_detached_tasks",
]

"""What runs at once, and what holds it back: gates, the CPU budget, subprocesses."""

from proctor.concurrency._adaptive import AdaptiveController, AdaptiveLimits, AdaptiveState, LimitChange, Token
from proctor.concurrency._collect import collect
from proctor.concurrency._connections import ConnectionPolicy, Connections, Wish
from proctor.concurrency._cpu import CpuBudget, cpu_budget
from proctor.concurrency._gate import Gate
from proctor.concurrency._pacing import PacerState, RequestPacer, Turn
from proctor.concurrency._run import (
    all_connections,
    concurrency,
    connections,
    gates,
    run_gates,
    subprocess_gate,
    tend_gates,
)
from proctor.concurrency._subprocess import kill_groups, subprocess

__all__ = [
    "AdaptiveController",
    "AdaptiveLimits",
    "AdaptiveState",
    "ConnectionPolicy",
    "Connections",
    "CpuBudget",
    "Gate",
    "LimitChange",
    "PacerState",
    "RequestPacer",
    "Token",
    "Turn",
    "Wish",
    "all_connections",
    "collect",
    "concurrency",
    "connections",
    "cpu_budget",
    "gates",
    "kill_groups",
    "run_gates",
    "subprocess",
    "subprocess_gate",
    "tend_gates",
]

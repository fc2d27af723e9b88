"""What runs at once, and what holds it back: gates, the CPU budget, subprocesses."""

from proctor.concurrency._cpu import CpuBudget, cpu_budget
from proctor.concurrency._gate import Gate
from proctor.concurrency._run import (
    concurrency,
    connection_gate,
    gates,
    run_gates,
    subprocess_gate,
)
from proctor.concurrency._subprocess import subprocess

__all__ = [
    "CpuBudget",
    "Gate",
    "concurrency",
    "connection_gate",
    "cpu_budget",
    "gates",
    "run_gates",
    "subprocess",
    "subprocess_gate",
]

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.concurrency import cpu_budget
from proctor.concurrency._cpu import read_budget


def _tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "affinity", "cpus", "source"),
    [
        ({}, 8, 8, "affinity"),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, 8, 8, "affinity"),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "250000 100000\n"}, 8, 3, "cgroup /a"),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 8, 1, "cgroup /"),
        (
            {
                "proc/self/cgroup": "4:memory:/x\n3:cpu,cpuacct:/job/step\n",
                "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "400000",
                "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000",
                "sys/fs/cgroup/cpu,cpuacct/job/step/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu,cpuacct/job/step/cpu.cfs_period_us": "100000",
            },
            16,
            4,
            "cgroup /job",
        ),
    ],
)
def test_the_smallest_of_affinity_and_all_quotas_on_the_way_up_holds(
    tmp_path: Path, files: dict[str, str], affinity: int, cpus: int, source: str
) -> None:
    budget = read_budget(_tree(tmp_path, files), affinity)
    assert (budget.cpus, budget.source) == (cpus, source)


def test_this_process_may_use_at_least_one() -> None:
    assert cpu_budget().cpus >= 1

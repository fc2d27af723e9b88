"""The CPU budget, from made-up ``/proc`` and cgroup trees."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.concurrency import cpu_budget
from proctor.concurrency._cpu import read_budget

CGROUP, MOUNTS = "proc/self/cgroup", "proc/self/mountinfo"
Files = dict[str, str]


def v2(group: str, text: str, mount: str = "sys/fs/cgroup") -> Files:
    """A group of version 2 with its quota and period."""
    return {f"{mount}/{group}/cpu.max": f"{text}\n"}


def v1(group: str, quota: int, period: int = 100_000, mount: str = "sys/fs/cgroup/cpu,cpuacct") -> Files:
    """A group of version 1 with its quota and period."""
    return {f"{mount}/{group}/cpu.cfs_quota_us": f"{quota}\n", f"{mount}/{group}/cpu.cfs_period_us": f"{period}\n"}


def mounted(*mounts: tuple[str, str, str]) -> Files:
    """``mountinfo`` of (group, mount point, type with options) and a line that is no cgroup."""
    lines = ["22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw"]
    lines += [f"3{n} 22 0:{n} {group} {point} rw shared:{n} - {kind}" for n, (group, point, kind) in enumerate(mounts)]
    return {MOUNTS: "\n".join(lines)}


def put(root: Path, files: Files) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


SLURM_V1 = "9:freezer:/slurm/uid_1/job_5/step_0\n4:cpu,cpuacct:/slurm/uid_1/job_5/step_0/task_0\n"
SLURM_V2 = "0::/system.slice/slurmstepd.scope/job_5/step_0/user/task_0\n"
POD = "/kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope"
CASES: dict[str, tuple[Files, int, int, str]] = {  # files, CPUs of the mask, CPUs of the budget, what set it
    "no cgroups": ({}, 8, 8, "affinity"),
    "version 2 without a quota": ({CGROUP: "0::/a/b\n"} | v2("a/b", "max 100000"), 8, 8, "affinity"),
    "version 2, quota of a group above": ({CGROUP: "0::/a/b\n"} | v2("a", "250000 100000"), 8, 3, "cgroup /a"),
    "version 2, the smallest of several": (
        {CGROUP: "0::/a/b/c\n"} | v2("a", "300000 100000") | v2("a/b", "200000 100000") | v2("a/b/c", "max 100000"),
        8,
        2,
        "cgroup /a/b",
    ),
    "half a CPU is one": ({CGROUP: "0::/\n"} | v2("", "50000 100000"), 8, 1, "cgroup /"),
    "a mask smaller than the quota": ({CGROUP: "0::/a\n"} | v2("a", "400000 100000"), 2, 2, "affinity"),
    "one and a half of two CPUs": ({CGROUP: "0::/a\n"} | v2("a", "150000 100000"), 2, 2, "cgroup /a"),
    "an unusual period": ({CGROUP: "0::/a\n"} | v2("a", "30000 10000"), 8, 3, "cgroup /a"),
    "version 1, the step unlimited, the job not": (
        {CGROUP: "4:memory:/x\n3:cpu,cpuacct:/job/step\n"} | v1("job", 400_000) | v1("job/step", -1),
        16,
        4,
        "cgroup /job",
    ),
    "version 1 mounted as cpu alone": (
        {CGROUP: "3:cpu:/job\n"} | v1("job", 120_000, mount="sys/fs/cgroup/cpu"),
        16,
        2,
        "cgroup /job",
    ),
    "version 1 with its controllers in the other order": (
        {CGROUP: "3:cpu,cpuacct:/job\n"}
        | mounted(("/", "/sys/fs/cgroup/cpuacct,cpu", "cgroup none rw,cpuacct,cpu"))
        | v1("job", 100_000, mount="sys/fs/cgroup/cpuacct,cpu"),
        16,
        1,
        "cgroup /job",
    ),
    "hybrid: the quota is in version 1": (
        {CGROUP: "3:cpu:/job\n1:name=systemd:/x\n0::/job\n"}
        | mounted(
            ("/", "/sys/fs/cgroup/cpu", "cgroup cgroup rw,cpu"),
            ("/", "/sys/fs/cgroup/systemd", "cgroup cgroup rw,name=systemd"),
            ("/", "/sys/fs/cgroup/unified", "cgroup2 cgroup2 rw"),
        )
        | v1("job", 300_000, mount="sys/fs/cgroup/cpu"),
        16,
        3,
        "cgroup /job",
    ),
    "hybrid: the quota is in version 2, at its own place": (
        {CGROUP: "3:memory:/job\n0::/job\n"}
        | mounted(("/", "/sys/fs/cgroup/unified", "cgroup2 cgroup2 rw"))
        | v2("job", "500000 100000", mount="sys/fs/cgroup/unified"),
        16,
        5,
        "cgroup /job",
    ),
    "hybrid without mountinfo": (
        {CGROUP: "0::/job\n"} | v2("job", "500000 100000", mount="sys/fs/cgroup/unified"),
        16,
        5,
        "cgroup /job",
    ),
    "a container of version 1, which sees its own group as the mount": (
        {CGROUP: "1:cpu,cpuacct:/docker/abc\n"}
        | mounted(("/docker/abc", "/sys/fs/cgroup/cpu,cpuacct", "cgroup cgroup rw,cpu,cpuacct"))
        | v1("", 150_000),
        8,
        2,
        "cgroup /",
    ),
    "a group inside such a container": (
        {CGROUP: "1:cpu,cpuacct:/docker/abc/inner\n"}
        | mounted(("/docker/abc", "/sys/fs/cgroup/cpu,cpuacct", "cgroup cgroup rw,cpu,cpuacct"))
        | v1("", 400_000)
        | v1("inner", 100_000),
        8,
        1,
        "cgroup /inner",
    ),
    "a container of version 2 with a namespace": (
        {CGROUP: "0::/\n"} | mounted(("/", "/sys/fs/cgroup", "cgroup2 cgroup rw")) | v2("", "150000 100000"),
        8,
        2,
        "cgroup /",
    ),
    "a pod whose mount shows its group, in the host's namespace": (
        {CGROUP: f"0::{POD}\n"} | mounted((POD, "/sys/fs/cgroup", "cgroup2 cgroup rw")) | v2("", "200000 100000"),
        8,
        2,
        "cgroup /",
    ),
    "a path outside of the namespace": (
        {CGROUP: "0::/../other\n"}
        | mounted(("/..", "/sys/fs/cgroup", "cgroup2 cgroup rw"))
        | v2("", "300000 100000")
        | v2("other", "100000 100000"),
        8,
        3,
        "cgroup /",
    ),
    "a mount point with a space": (
        {CGROUP: "0::/a\n"} | mounted(("/", r"/my\040cgroups", "cgroup2 none rw")) | v2("a", "1 1", "my cgroups"),
        8,
        1,
        "cgroup /a",
    ),
    "a Slurm step of version 1": (
        {CGROUP: SLURM_V1} | v1("slurm/uid_1/job_5", 600_000) | v1("slurm/uid_1/job_5/step_0", 250_000),
        64,
        3,
        "cgroup /slurm/uid_1/job_5/step_0",
    ),
    "a Slurm job of version 2": (
        {CGROUP: SLURM_V2} | v2("system.slice/slurmstepd.scope/job_5", "1600000 100000"),
        64,
        16,
        "cgroup /system.slice/slurmstepd.scope/job_5",
    ),
    "files that say nothing": (
        {CGROUP: "nonsense\n0::/a\n\n", MOUNTS: "nonsense\n1 2 3 - cgroup\n"}
        | v2("a", "lots of it")
        | v2("", "0 0")
        | {"sys/fs/cgroup/a/cpu.cfs_quota_us": "1"},
        8,
        8,
        "affinity",
    ),
}


@pytest.mark.parametrize(("files", "mask", "cpus", "source"), CASES.values(), ids=CASES)
def test_the_smallest_of_the_mask_and_all_quotas_on_the_way_up_holds(
    tmp_path: Path, files: Files, mask: int, cpus: int, source: str
) -> None:
    budget = read_budget(put(tmp_path, files), mask)

    assert (budget.cpus, budget.source) == (cpus, source)


@pytest.mark.parametrize("name", [CGROUP, MOUNTS, "sys/fs/cgroup/a/cpu.max"])
def test_a_file_that_cannot_be_read_sets_nothing(tmp_path: Path, name: str) -> None:
    files = {CGROUP: "0::/a\n"} | mounted(("/", "/sys/fs/cgroup", "cgroup2 cgroup2 rw")) | v2("a", "100000 100000")
    root = put(tmp_path, files)
    (root / name).unlink()
    (root / name).mkdir()  # reading it fails whoever reads; a superuser reads a file of any mode

    budget = read_budget(root, 8)

    # Without mountinfo the group is found where it usually is.
    assert (budget.cpus, budget.source) == ((1, "cgroup /a") if name == MOUNTS else (8, "affinity"))


def test_a_file_that_is_not_text_sets_nothing(tmp_path: Path) -> None:
    root = put(tmp_path, {CGROUP: "0::/a\n"} | v2("a", ""))
    (root / "sys/fs/cgroup/a/cpu.max").write_bytes(b"\xff\xfe 100000")

    assert read_budget(root, 8).cpus == 8


@given(mask=st.integers(0, 512), quotas=st.lists(st.tuples(st.integers(-1, 10**8), st.integers(1, 10**6)), max_size=5))
def test_it_is_a_whole_number_of_at_least_one_and_at_most_each_limit(
    tmp_path_factory: pytest.TempPathFactory, mask: int, quotas: list[tuple[int, int]]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    put(root, {CGROUP: f"3:cpu,cpuacct:/{'/'.join('g' * len(quotas))}\n"})
    for depth, (quota, period) in enumerate(quotas, 1):
        put(root, v1("/".join("g" * depth), quota, period))

    cpus = read_budget(root, mask).cpus

    limits = [mask, *(-(-quota // period) for quota, period in quotas if quota > 0)]
    assert cpus == max(1, min(limits))


def test_this_process_may_use_at_least_one() -> None:
    assert cpu_budget().cpus >= 1

"""What the package says of itself before any engine is asked."""

from __future__ import annotations

from proctor import plugins
from proctor.contracts import SandboxProvider


def test_there_are_two_sandboxes_for_each_cpu_unless_somebody_says_otherwise() -> None:
    record: SandboxProvider = plugins.get("sandbox_providers", "docker")

    assert [record.default_max_sandboxes(cpus) for cpus in (1, 8)] == [2, 16]


def test_a_compose_file_beside_the_task_goes_before_a_dockerfile() -> None:
    record: SandboxProvider = plugins.get("sandbox_providers", "docker")

    assert record.config_files[0] == "compose.yaml" and record.config_files[-1] == "Dockerfile"

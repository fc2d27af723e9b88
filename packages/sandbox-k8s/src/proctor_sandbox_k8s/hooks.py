"""What this package offers: sandboxes in pods of Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.contracts import SandboxProvider
from proctor.hookspecs import hookimpl

if TYPE_CHECKING:
    from proctor.contracts import SandboxDriver


def _make() -> SandboxDriver:
    from proctor_sandbox_k8s._driver import KubernetesDriver

    return KubernetesDriver()


@hookimpl
def proctor_sandbox_providers() -> Sequence[SandboxProvider]:
    """One provider, for every cluster that a kubeconfig, or the pod that Proctor runs in, leads to."""
    return [
        SandboxProvider(
            name="k8s",
            factory=_make,
            # Pods run elsewhere: of this machine a command takes a thread that waits, and a connection.
            default_max_sandboxes=lambda cpus: 16 * cpus,
            default_max_execs=lambda cpus: 4 * cpus,
            # Not values.yaml: that is what Helm's charts call theirs, with keys of their own.
            config_files=("k8s.yaml", "k8s.yml"),
            summary="pods of Kubernetes: --sandbox k8s:IMAGE, k8s:image=IMAGE,memory=2Gi, k8s:k8s.yaml",
        )
    ]

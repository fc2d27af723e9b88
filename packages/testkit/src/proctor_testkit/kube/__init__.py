"""A Kubernetes API on loopback: pods that run as processes or in containers, and faults on demand."""

from proctor_testkit.kube._cluster import FakeKubernetes
from proctor_testkit.kube._wire import KubeRequest

__all__ = ["FakeKubernetes", "KubeRequest"]

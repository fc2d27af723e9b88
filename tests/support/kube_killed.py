"""A fake Kubernetes in another process, which is killed while it has a pod."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from typing import Literal

from kube_client import KubeClient
from kube_pods import IMAGE, pod

from proctor_testkit import FakeKubernetes

__all__ = ["left_by"]


def left_by(backing: Literal["processes", "docker"], host: str | None) -> str:
    """Kill a fake that has a pod; the pod's uid."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=serve, args=(backing, host, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        assert ours.poll(60)
        return str(ours.recv())
    finally:
        process.kill()
        process.join(60)
        process.close()
        ours.close()


def serve(backing: Literal["processes", "docker"], host: str | None, pipe: Connection) -> None:
    with FakeKubernetes(backing, docker_host=host) as cluster:
        client = KubeClient(cluster)
        client.call(
            "POST",
            client.pods,
            pod("left", containers=[{"name": "main", "image": IMAGE, "command": ["sleep", "12345"]}]),
        )
        client.until("left", "Running")
        pipe.send(cluster.objects()[0]["metadata"]["uid"])
        pipe.recv()

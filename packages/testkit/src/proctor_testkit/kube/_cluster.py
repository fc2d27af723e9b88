"""FakeKubernetes: what tests do to its cluster beside what they ask of its API."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeVar

from proctor_testkit.kube._errors import ApiError
from proctor_testkit.kube._pods import PodRun
from proctor_testkit.kube._server import KubeServer
from proctor_testkit.kube._store import Obj
from proctor_testkit.kube._types import KINDS

__all__ = ["FakeKubernetes"]

_T = TypeVar("_T")
_PODS = KINDS["", "pods"]


class FakeKubernetes(KubeServer):
    """A Kubernetes API server on loopback that speaks the real protocol, with one node that runs pods.

    Args:
        backing: what pods are made of: ``processes`` of this machine, each with a private folder as its working
            directory, or ``docker``: real containers of the engine at ``docker_host`` (``DOCKER_HOST``).
        namespace: of the kubeconfig; it is there.
        context: of the kubeconfig.
        token: that every request must bear.
        tls: with a certificate made for it; kubectl sends no token without.
        pause_image: of the container that holds the network of a pod with several containers (``docker``).
        pods: that the node has room for; also ``cpus`` and ``memory`` (bytes).

    Attributes:
        requests: all requests so far, each with its ``kind``: ``create pods``, ``watch pods``, ``exec pods``.

    Example::

        with FakeKubernetes() as cluster:
            subprocess.run(["kubectl", "--kubeconfig", cluster.kubeconfig(), "get", "pods"])
            cluster.fail(500, on="^exec", times=2)
            ...
            assert cluster.count("^exec") == 3
    """

    def objects(self, plural: str = "pods", namespace: str | None = None) -> list[Obj]:
        """The objects of a type as they are now: of the namespace of the kubeconfig, unless another is named."""
        kind = next(one for one in KINDS.values() if one.plural == plural)
        wanted = (self.namespace if namespace is None else namespace) if kind.namespaced else ""
        return self._call(lambda: copy.deepcopy(self._store.all(kind, wanted)))

    def apply(self, obj: Obj, namespace: str | None = None) -> Obj:
        """Make an object, such as a quota, without a request.

        Raises:
            ValueError: if the API would refuse it.
        """
        group = str(obj.get("apiVersion", "v1")).rpartition("/")[0]
        kind = next(one for one in KINDS.values() if one.kind == obj["kind"] and one.group == group)
        home = (self.namespace if namespace is None else namespace) if kind.namespaced else ""
        return self._call(lambda: _plainly(lambda: self._api.create(kind, home, obj)))

    def kill_container(self, pod: str, container: str = "", namespace: str | None = None) -> None:
        """End a container at once, as if its process had died: it is started again, or not, by the pod's policy."""

        async def kill() -> None:
            state = self._run_of(pod, namespace).container(container or self._first(pod, namespace))
            if state is None or state.running is None:
                raise ValueError(f"pod {pod} has no running container {container!r}")
            await state.running.stop(0)

        self._do(kill())

    def evict(self, pod: str, message: str = "The node was low on resource: memory.") -> None:
        """Have the node evict a pod: it fails, its connections are reset, its object stays."""

        async def evict() -> None:
            run = self._run_of(pod, None)
            self._node.cut(run.uid)
            await run.fail("Evicted", message)

        self._do(evict())

    def replace(self, pod: str) -> None:
        """Take a pod away, and put another of the same name in its place, as a controller does."""

        async def replace() -> None:
            run = self._run_of(pod, None)
            old = run.pod
            assert old is not None
            self._node.cut(run.uid)
            self._api.deletion.delete(_PODS, old, {"gracePeriodSeconds": 0})
            spec = {key: value for key, value in old["spec"].items() if key != "nodeName"}
            kept = {key: old["metadata"][key] for key in ("name", "labels", "annotations") if key in old["metadata"]}
            self._api.create(_PODS, self.namespace, {"metadata": kept, "spec": spec})

        self._do(replace())

    def lose_node(self) -> None:
        """Nothing is heard of the node: commands are cut and refused, deletes hang, until ``find_node``."""
        self._call(self._node.lose)

    def find_node(self) -> None:
        """The node is there again."""
        self._call(self._node.find)

    def hold_starts(self) -> None:
        """Pods that are created from now on stay in ContainerCreating, until ``release_starts``."""
        self._call(self._node.starts.clear)

    def release_starts(self) -> None:
        """Let pods start."""
        self._call(self._node.starts.set)

    def hold_deletes(self) -> None:
        """Pods that are deleted from now on stay Terminating, until ``release_deletes`` (or they are forced)."""
        self._call(self._node.deletes.clear)

    def release_deletes(self) -> None:
        """Let pods come to an end."""
        self._call(self._node.deletes.set)

    def unschedulable(self, message: str = "0/1 nodes are available: 1 Insufficient cpu.") -> None:
        """Pods that are created from now on stay Pending, for this reason; with "" they find a place again."""

        def change() -> None:
            self._node.unschedulable = message
            self._node.changed()

        self._call(change)

    def lose_image(self, image: str, message: str = "pull access denied, repository does not exist") -> None:
        """Pods of an image wait with ErrImagePull and ImagePullBackOff, until ``find_image``."""
        self._call(lambda: self._node.missing.__setitem__(image, message))

    def find_image(self, image: str) -> None:
        """The image can be pulled again."""
        self._call(lambda: self._node.missing.pop(image, None))

    def expire_watches(self) -> None:
        """Forget what changed: watches that are open end with 410, as do those that go on from an older version."""
        self._call(self._store.compact)

    def end_streams(self) -> None:
        """Reset the connections of all commands and logs that run now; the commands run on."""

        def cut() -> None:
            for uid in list(self._node.streams):
                self._node.cut(uid)

        self._call(cut)

    def _run_of(self, pod: str, namespace: str | None) -> PodRun:
        found = self._store.get(_PODS, namespace or self.namespace, pod)
        run = self._node.run(found) if found is not None else None
        if run is None:
            raise ValueError(f"there is no pod {pod} in the namespace {namespace or self.namespace}")
        return run

    def _first(self, pod: str, namespace: str | None) -> str:
        return str(self._run_of(pod, namespace).spec["containers"][0]["name"])


def _plainly(work: Callable[[], _T]) -> _T:
    try:
        return work()
    except ApiError as error:
        raise ValueError(str(error)) from error

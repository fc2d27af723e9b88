"""What the API server does: objects are made, read, changed, watched and taken away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from proctor_testkit.kube._admission import admit, show_quotas
from proctor_testkit.kube._deletion import Deletion
from proctor_testkit.kube._errors import ApiError, already_there, bad_request, not_found
from proctor_testkit.kube._exec import run_command, send_log
from proctor_testkit.kube._node import Node
from proctor_testkit.kube._patch import applied, json_patch, merge_patch, strategic_merge
from proctor_testkit.kube._routes import Route
from proctor_testkit.kube._store import Obj, Selector, Store, selector
from proctor_testkit.kube._tables import table
from proctor_testkit.kube._types import KINDS, Kind, discovery
from proctor_testkit.kube._validation import check, complete, unknown_fields
from proctor_testkit.kube._wire import Connection, KubeRequest

__all__ = ["Api"]

_PODS, _NAMESPACES, _QUOTAS = KINDS["", "pods"], KINDS["", "namespaces"], KINDS["", "resourcequotas"]
_ACCOUNTS = KINDS["", "serviceaccounts"]
_MUTABLE = frozenset({"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"})


class Api:
    """The verbs, each on what is kept and on the node that runs pods.

    Attributes:
        bookmark_every: seconds between the bookmarks of a watch.
    """

    def __init__(self, store: Store, node: Node) -> None:
        self.store = store
        self.node = node
        self.deletion = Deletion(store, node)
        self.bookmark_every = 1.0
        self._wanted: dict[tuple[str, str], Obj] = {}

    async def handle(self, route: Route, request: KubeRequest, connection: Connection) -> None:
        """Answer a request.

        Raises:
            ApiError: if it is refused.
        """
        kind = route.kind
        if kind is None:
            found = discovery(request.path) if request.method == "GET" else None
            if found is None:
                raise ApiError(404, "the server could not find the requested resource")
            await connection.reply(200, found)
        elif route.sub in ("exec", "log") and kind == _PODS:
            serve = run_command if route.sub == "exec" else send_log
            await serve(self.node, self._there(route), request, connection)
        elif route.sub == "eviction":
            self.deletion.delete(_PODS, self._there(route), request.object().get("deleteOptions") or {})
            await connection.reply(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})
        elif route.verb == "watch":
            await connection.chunks(self._watch(route, request), "application/json")
        else:
            status, said, headers = self._plain(kind, route, request)
            if "as=Table" in request.headers.get("accept", "") and said.get("kind") != "Status":
                objects = said.get("items", [said])
                about = said["metadata"] if "items" in said else {}
                said = table(kind, objects, about)
            await connection.reply(status, said, headers)

    def create(self, kind: Kind, namespace: str, obj: Obj, *, dry: bool = False) -> Obj:
        """Make an object; ``dry``: only say how it would be.

        Raises:
            ApiError: if it is refused.
        """
        made = complete(kind, obj, namespace)
        if not kind.stored:
            return {**made, "status": {"allowed": True}}
        check(kind, made)
        if self.store.get(kind, namespace, made["metadata"]["name"]) is not None:
            raise already_there(kind.qualified, made["metadata"]["name"])
        admit(self.store, kind, made)
        if dry:
            return made
        made = self.store.put(kind, made)
        if kind == _PODS:
            self.node.start(made)
        elif kind == _NAMESPACES:
            self.create(_ACCOUNTS, made["metadata"]["name"], {"metadata": {"name": "default"}})
        return made

    def _plain(self, kind: Kind, route: Route, request: KubeRequest) -> tuple[int, Obj, dict[str, str]]:
        """The status, the body and the headers of what is answered at once."""
        dry = "All" in request.query.get("dryRun", [])
        if route.verb == "get":
            found = self._there(route)
            return 200, show_quotas(self.store, found) if kind == _QUOTAS else found, {}
        if route.verb == "list":
            return 200, self._list(route, request), {}
        if route.verb == "create" and not route.name:
            obj = request.object()
            warned = self._unknown(kind, obj, request)
            return 201, self.create(kind, route.namespace, obj, dry=dry), warned
        if route.verb == "patch":
            return self._patch(kind, route, request, dry)
        if route.verb == "update":
            obj = request.object()
            warned = self._unknown(kind, obj, request)
            return 200, self._replace(route, self._there(route), obj, dry), warned
        options = {**(request.object() if request.body else {})}
        for name in ("gracePeriodSeconds", "propagationPolicy"):
            if name in request.query:
                options[name] = int(request.one(name)) if name[0] == "g" else request.one(name)
        dry = dry or "All" in (options.get("dryRun") or [])
        if route.verb == "delete":
            found = self._there(route)
            return 200, found if dry else self.deletion.delete(kind, found, options), {}
        if route.verb == "deletecollection":
            listed = self._list(route, request)
            for found in self.store.all(kind, route.namespace) if not dry else ():
                if self._selector(route, request)(found):
                    self.deletion.delete(kind, found, options)
            return 200, listed, {}
        raise ApiError(405, "the server does not allow this method on the requested resource")

    def _there(self, route: Route) -> Obj:
        assert route.kind is not None
        found = self.store.get(route.kind, route.namespace, route.name)
        if found is None:
            raise not_found(route.kind.qualified, route.name)
        return found

    def _selector(self, route: Route, request: KubeRequest) -> Selector:
        fields = request.one("fieldSelector")
        if route.name:
            fields = f"metadata.name={route.name}"
        return selector(request.one("labelSelector"), fields, route.namespace)

    def _list(self, route: Route, request: KubeRequest) -> Obj:
        kind = route.kind
        assert kind is not None
        limit, token = int(request.one("limit", "0")), request.one("continue")
        found, about = self.store.page(kind, route.namespace, self._selector(route, request), limit, token)
        if kind == _QUOTAS:
            found = [show_quotas(self.store, one) for one in found]
        bare = [{key: value for key, value in one.items() if key not in ("kind", "apiVersion")} for one in found]
        return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": about, "items": bare}

    async def _watch(self, route: Route, request: KubeRequest) -> AsyncGenerator[bytes, None]:
        kind = route.kind
        assert kind is not None
        loop = asyncio.get_running_loop()
        end = loop.time() + float(request.one("timeoutSeconds") or 3600)
        initial = request.flag("sendInitialEvents")
        since = "" if initial else request.one("resourceVersion")
        try:
            watcher = self.store.watch(kind, self._selector(route, request), since)
        except ApiError as error:
            # A watch that is refused has begun by then: the refusal is its first event.
            yield json.dumps({"type": "ERROR", "object": error.status}).encode() + b"\n"
            return
        told = first = not initial
        as_table = "as=Table" in request.headers.get("accept", "")
        try:
            while (left := end - loop.time()) > 0:
                try:
                    wait = 0 if not told else min(left, self.bookmark_every)
                    event, obj = (
                        await asyncio.wait_for(watcher.queue.get(), wait)
                        if watcher.queue.empty()
                        else (watcher.queue.get_nowait())
                    )
                except TimeoutError:
                    if request.flag("allowWatchBookmarks"):
                        yield self._bookmark(kind, ends_list=not told)
                    told = True
                    continue
                if as_table and event != "ERROR":
                    obj = table(kind, [obj], {"resourceVersion": obj["metadata"]["resourceVersion"]}, columns=first)
                    first = False
                yield json.dumps({"type": event, "object": obj}, separators=(",", ":")).encode() + b"\n"
                if event == "ERROR":
                    return
        finally:
            self.store.leave(watcher)

    def _bookmark(self, kind: Kind, *, ends_list: bool) -> bytes:
        about: Obj = {"resourceVersion": str(self.store.version), "creationTimestamp": None}
        if ends_list:
            about["annotations"] = {"k8s.io/initial-events-end": "true"}
        obj = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": about}
        return json.dumps({"type": "BOOKMARK", "object": obj}).encode() + b"\n"

    def _unknown(self, kind: Kind, obj: Obj, request: KubeRequest) -> dict[str, str]:
        """Refuse fields that there are not, or warn of them by a header, as the request has it."""
        found = unknown_fields(kind, obj)
        how = request.one("fieldValidation", "Warn")
        if found and how == "Strict":
            raise bad_request(
                f'{kind.kind} in version "v1" cannot be handled: strict decoding error: {", ".join(found)}'
            )
        escaped = "; ".join(found).replace('"', '\\"')
        return {"warning": f'299 - "{escaped}"'} if found and how == "Warn" else {}

    def _patch(self, kind: Kind, route: Route, request: KubeRequest, dry: bool) -> tuple[int, Obj, dict[str, str]]:
        form = request.headers.get("content-type", "").partition(";")[0].strip()
        if form == "application/apply-patch+yaml":
            return self._apply(kind, route, request, dry)
        before = self._there(route)
        if form == "application/json-patch+json":
            after = json_patch(before, json.loads(request.body))
        elif form == "application/merge-patch+json":
            after = merge_patch(before, request.object())
        elif form == "application/strategic-merge-patch+json":
            after = strategic_merge(before, request.object())
        else:
            raise ApiError(415, f"the body of the request was in an unknown format - {form}")
        warned = self._unknown(kind, after, request)
        return 200, self._replace(route, before, after, dry), warned

    def _apply(self, kind: Kind, route: Route, request: KubeRequest, dry: bool) -> tuple[int, Obj, dict[str, str]]:
        """Server-side apply. Who else wants the same field is not asked: as with ``force``."""
        wanted, manager = request.object(), request.one("fieldManager")
        if not manager:
            raise ApiError(422, "PatchOptions.meta.k8s.io is invalid: fieldManager: Required value", "Invalid")
        warned = self._unknown(kind, wanted, request)
        found = self.store.get(kind, route.namespace, route.name)
        if found is None:
            wanted = {**wanted, "metadata": {**(wanted.get("metadata") or {}), "name": route.name}}
            made, status = self.create(kind, route.namespace, wanted, dry=dry), 201
        else:
            before = self._wanted.get((found["metadata"]["uid"], manager), {})
            made, status = self._replace(route, found, applied(found, before, wanted), dry), 200
        if not dry:
            self._wanted[made["metadata"]["uid"], manager] = wanted
        return status, made, warned

    def _replace(self, route: Route, before: Obj, after: Obj, dry: bool) -> Obj:
        kind = route.kind
        assert kind is not None
        old, new = before["metadata"], dict(after.get("metadata") or {})
        if new.get("name", route.name) != route.name or new.get("uid", old["uid"]) != old["uid"]:
            raise ApiError(409, f'Operation cannot be fulfilled on {kind.qualified} "{route.name}": another object')
        if new.get("resourceVersion", old["resourceVersion"]) != old["resourceVersion"]:
            said = "the object has been modified; please apply your changes to the latest version and try again"
            raise ApiError(409, f'Operation cannot be fulfilled on {kind.qualified} "{route.name}": {said}')
        fixed = ("uid", "name", "namespace", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
        new = {key: value for key, value in new.items() if key not in fixed}
        new |= {key: old[key] for key in fixed if key in old}
        made: Obj = {**after, "kind": kind.kind, "apiVersion": kind.api_version, "metadata": new}
        if route.sub == "status":
            made = {**before, "status": after.get("status") or {}}
        elif "status" in before:
            made["status"] = before["status"]
        if kind == _PODS:
            self._same_spec(before, made)
        check(kind, made)
        if dry or made == before:
            return made
        made = self.store.put(kind, made)
        if new.get("deletionTimestamp") and not new.get("finalizers"):
            self.deletion.finish(kind, made)
        return made

    @staticmethod
    def _same_spec(before: Obj, after: Obj) -> None:
        def fixed(pod: Obj) -> Any:
            spec = {key: value for key, value in pod["spec"].items() if key not in _MUTABLE}
            for side in ("initContainers", "containers"):
                spec[side] = [{**one, "image": ""} for one in spec.get(side) or []]
            return spec

        if fixed(before) != fixed(after):
            name = before["metadata"]["name"]
            why = "pod updates may not change fields other than `spec.containers[*].image`"
            raise ApiError(422, f'Pod "{name}" is invalid: spec: Forbidden: {why}', name=name, kind="Pod")

"""What an API server does to an object before it keeps it: defaults, names, unknown fields, admission."""

from __future__ import annotations

import copy
import re
import secrets
import uuid
from datetime import UTC, datetime
from typing import Any

from proctor_testkit.kube._errors import bad_request, invalid
from proctor_testkit.kube._quantity import quantity
from proctor_testkit.kube._store import Obj
from proctor_testkit.kube._types import Kind

__all__ = ["check", "complete", "now", "unknown_fields"]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VARIABLE = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_RULE = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_ANNOTATIONS = 256 << 10  # bytes


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_METADATA = _names(
    "annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generateName generation"
    " labels managedFields name namespace ownerReferences resourceVersion selfLink uid"
)
_POD_SPEC = _names(
    "activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy enableServiceLinks"
    " ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname imagePullSecrets initContainers"
    " nodeName nodeSelector os overhead preemptionPolicy priority priorityClassName readinessGates resourceClaims"
    " resources restartPolicy runtimeClassName schedulerName schedulingGates securityContext serviceAccount"
    " serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations"
    " topologySpreadConstraints volumes"
)
_CONTAINER = _names(
    "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe resizePolicy"
    " resources restartPolicy securityContext startupProbe stdin stdinOnce terminationMessagePath"
    " terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
)


def now() -> str:
    """The time, as objects have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def complete(kind: Kind, obj: Obj, namespace: str) -> Obj:
    """A copy of a new object with what the server adds to it.

    Raises:
        ApiError: if it is of another type or another namespace than the path says.
    """
    made = copy.deepcopy(obj)
    if made.get("kind", kind.kind) != kind.kind or made.get("apiVersion", kind.api_version) != kind.api_version:
        said = f"{made.get('apiVersion')}, Kind={made.get('kind')}"
        raise bad_request(f"the API version or kind in the data ({said}) does not match the expected {kind.kind}")
    made["kind"], made["apiVersion"] = kind.kind, kind.api_version
    about = made["metadata"] = dict(made.get("metadata") or {})
    if about.get("namespace") not in (None, "", namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if kind.namespaced:
        about["namespace"] = namespace
    if not about.get("name") and about.get("generateName"):
        about["name"] = about["generateName"][:58] + "".join(secrets.choice(_LETTERS) for _ in range(5))
    about |= {"uid": str(uuid.uuid4()), "creationTimestamp": now()}
    for name in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        about.pop(name, None)
    if kind.plural == "pods":
        _complete_pod(made)
    elif kind.plural == "secrets":
        _complete_secret(made)
    elif kind.plural == "namespaces":
        made["spec"], made["status"] = {"finalizers": ["kubernetes"]}, {"phase": "Active"}
    return made


def _complete_secret(made: Obj) -> None:
    import base64

    made.setdefault("type", "Opaque")
    plain = made.pop("stringData", None) or {}
    coded = {key: base64.b64encode(str(value).encode()).decode() for key, value in plain.items()}
    made["data"] = {**(made.get("data") or {}), **coded}


def _complete_pod(made: Obj) -> None:
    spec = made["spec"] = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
        "serviceAccountName": "default",
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        **(made.get("spec") or {}),
    }
    spec["serviceAccount"] = spec["serviceAccountName"]
    fixed = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "resources": {}}
    for side in ("initContainers", "containers"):
        if side in spec:
            spec[side] = [{**fixed, **(one or {})} for one in spec[side] or []]
            for one in spec[side]:
                latest = ":" not in str(one.get("image", "")).rpartition("/")[2] or str(one["image"]).endswith(
                    ":latest"
                )
                one.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    resources = [one.get("resources") or {} for one in spec.get("containers") or []]
    equal = all(one.get("limits") and one.get("requests", one["limits"]) == one["limits"] for one in resources)
    some = any(one.get("limits") or one.get("requests") for one in resources)
    made["status"] = {"phase": "Pending", "qosClass": "Guaranteed" if equal else "Burstable" if some else "BestEffort"}


def check(kind: Kind, obj: Obj) -> None:
    """Refuse an object that a real server refuses.

    Raises:
        ApiError: if it is invalid.
    """
    about, found = obj["metadata"], list[tuple[str, str, str]]()
    name = str(about.get("name") or "")
    if not name:
        found.append(("FieldValueRequired", "metadata.name", "Required value: name or generateName is required"))
    elif not _NAME.fullmatch(name) or len(name) > (63 if kind.plural in ("namespaces", "services") else 253):
        found.append(("FieldValueInvalid", "metadata.name", f'Invalid value: "{name}": {_RULE}'))
    for key, value in (about.get("labels") or {}).items():
        if not _KEY.fullmatch(str(key)):
            found.append(("FieldValueInvalid", "metadata.labels", f'Invalid value: "{key}": name part must be valid'))
        if not isinstance(value, str):
            raise bad_request(f"json: cannot unmarshal {type(value).__name__} into Go struct field ObjectMeta.labels")
        if len(value) > 63 or not _LABEL.fullmatch(value):
            rule = "must be no more than 63 characters" if len(value) > 63 else "a valid label must be alphanumeric"
            found.append(("FieldValueInvalid", "metadata.labels", f'Invalid value: "{value}": {rule}'))
    size = 0
    for key, value in (about.get("annotations") or {}).items():
        if not _KEY.fullmatch(str(key)):
            found.append(("FieldValueInvalid", "metadata.annotations", f'Invalid value: "{key}"'))
        if not isinstance(value, str):
            raise bad_request(f"json: cannot unmarshal {type(value).__name__} into ObjectMeta.annotations")
        size += len(key) + len(value.encode())
    if size > _ANNOTATIONS:
        found.append(("FieldValueTooLong", "metadata.annotations", f"Too long: may not be more than {_ANNOTATIONS}"))
    if kind.plural == "pods":
        found += _check_pod(obj["spec"])
    if found:
        raise invalid(kind.kind, name, found)


def _check_pod(spec: Obj) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    if not spec.get("containers"):
        found.append(("FieldValueRequired", "spec.containers", "Required value"))
    if spec["restartPolicy"] not in ("Always", "OnFailure", "Never"):
        found.append(("FieldValueNotSupported", "spec.restartPolicy", f'Unsupported value: "{spec["restartPolicy"]}"'))
    volumes = {one.get("name") for one in spec.get("volumes") or []}
    names: set[str] = set()
    for side in ("initContainers", "containers"):
        for number, one in enumerate(spec.get(side) or []):
            at = f"spec.{side}[{number}]"
            name = str(one.get("name") or "")
            if not name:
                found.append(("FieldValueRequired", f"{at}.name", "Required value"))
            elif not _NAME.fullmatch(name) or "." in name or len(name) > 63:
                found.append(("FieldValueInvalid", f"{at}.name", f'Invalid value: "{name}": {_RULE}'))
            elif name in names:
                found.append(("FieldValueDuplicate", f"{at}.name", f'Duplicate value: "{name}"'))
            names.add(name)
            if not one.get("image"):
                found.append(("FieldValueRequired", f"{at}.image", "Required value"))
            found += _check_container(at, one, volumes)
    return found


def _check_container(at: str, one: Obj, volumes: set[Any]) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    for key, variable in enumerate(one.get("env") or []):
        if not isinstance(variable.get("value", ""), str):
            raise bad_request("json: cannot unmarshal number into Go struct field EnvVar.value of type string")
        if not _VARIABLE.fullmatch(str(variable.get("name", ""))):
            found.append(("FieldValueInvalid", f"{at}.env[{key}].name", f'Invalid value: "{variable.get("name")}"'))
    for side in ("command", "args"):
        if not all(isinstance(word, str) for word in one.get(side) or []):
            raise bad_request(f"json: cannot unmarshal into Go struct field Container.{side} of type string")
    for key, mount in enumerate(one.get("volumeMounts") or []):
        if mount.get("name") not in volumes:
            found.append(("FieldValueNotFound", f"{at}.volumeMounts[{key}].name", f'Not found: "{mount.get("name")}"'))
    for side in ("limits", "requests"):
        for resource, given in ((one.get("resources") or {}).get(side) or {}).items():
            try:
                quantity(given)
            except ValueError as error:
                raise bad_request(f"{at}.resources.{side}.{resource}: {error}") from None
    return found


def unknown_fields(kind: Kind, obj: Obj) -> list[str]:
    """The fields of a pod, or of any object's metadata, that there are not: ``unknown field "spec.x"``."""
    found = [f"metadata.{name}" for name in sorted(set(obj.get("metadata") or {}) - _METADATA)]
    if kind.plural == "pods":
        spec = obj.get("spec") or {}
        found += [f"spec.{name}" for name in sorted(set(spec) - _POD_SPEC)]
        for side in ("initContainers", "containers"):
            for number, one in enumerate(spec.get(side) or []):
                found += [f"spec.{side}[{number}].{name}" for name in sorted(set(one or {}) - _CONTAINER)]
    return [f'unknown field "{name}"' for name in found]

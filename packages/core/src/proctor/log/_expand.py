"""A sample as it was before it was condensed: pools laid out in the events, attachments put back in their places."""

from __future__ import annotations

import re
from typing import Any, Literal

from proctor.log._json import decode, validate
from proctor.schema import ChatMessage, EvalSample, ModelEvent

__all__ = ["Resolve", "expand_pools", "parse_sample", "resolve_tree"]

Resolve = bool | Literal["core", "full"]
"""Which attachments are put back: none (``False``), all but those in raw calls (``core``), all (``full``, ``True``)."""

_REFERENCE = re.compile(r"(?:attachment|tc)://([0-9a-fA-F]{8,40})")
_MARKS = (b'"attachment://', b'"tc://')


def parse_sample(raw: bytes, resolve: Resolve = False) -> EvalSample:
    """The sample in the JSON ``raw``, its pools expanded.

    Raises:
        ValueError: if it is not JSON, or not a sample.
    """
    if resolve and any(mark in raw for mark in _MARKS):
        tree = decode(raw)
        if isinstance(tree, dict):
            resolve_tree(tree, full=resolve != "core")
        sample = EvalSample.model_validate(tree)
    else:
        sample = validate(EvalSample, raw)
        if resolve in (True, "full"):
            sample.attachments = {}
    expand_pools(sample)
    return sample


def expand_pools(sample: EvalSample) -> None:
    """Give every model event its messages, and its raw call the conversation, in place of references to the pools."""
    pool = sample.events_data
    if pool is None:
        return
    for event in sample.events:
        if not isinstance(event, ModelEvent):
            continue
        if event.input_refs is not None:
            event.input = _pick(pool.messages, event.input_refs)
            event.input_refs = None
        call = event.call
        if call is not None and call.call_refs is not None:
            call.request[call.call_key or "messages"] = _pick(pool.calls, call.call_refs)
            call.call_refs = call.call_key = None
    sample.events_data = None


def _pick(pool: list[Any], refs: list[tuple[int, int]]) -> list[Any]:
    picked: list[ChatMessage] = []
    for start, end in refs:
        picked += pool[start:end]
    return picked


def resolve_tree(sample: dict[str, Any], *, full: bool) -> None:
    """Put the attachments of a sample (JSON data, changed in place) back: all, or all but those in raw calls."""
    attachments = sample.get("attachments")
    if not isinstance(attachments, dict):
        return
    held = _Attachments(attachments)
    calls: list[Any] = []
    if not full:  # set aside what stays as it is
        calls = _take_calls(sample)
    for name, value in sample.items():
        if name != "attachments":
            sample[name] = held.put_back(value)
    if full:
        sample["attachments"] = {}
        return
    for owner, name, value in calls:
        owner[name] = value
    still = _References()
    still.find([value for _, _, value in calls])
    sample["attachments"] = {key: text for key, text in attachments.items() if key in still.keys}


def _take_calls(sample: dict[str, Any]) -> list[tuple[dict[str, Any], str, Any]]:
    owners = [(event, "call") for event in sample.get("events") or () if isinstance(event, dict) and "call" in event]
    for retry in sample.get("error_retries") or ():
        events = retry.get("events") if isinstance(retry, dict) else None
        owners += [(event, "call") for event in events or () if isinstance(event, dict) and "call" in event]
    pool = sample.get("events_data")
    if isinstance(pool, dict) and "calls" in pool:
        owners.append((pool, "calls"))
    return [(owner, name, owner.pop(name)) for owner, name in owners]


class _Attachments:
    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def put_back(self, value: Any) -> Any:
        if isinstance(value, str):
            if value.startswith(("attachment://", "tc://")):
                found = _REFERENCE.fullmatch(value)
                return self._texts.get(found[1], value) if found else value
            return value
        if isinstance(value, dict):
            for key, item in value.items():
                if isinstance(item, (str, dict, list)):
                    value[key] = self.put_back(item)
        elif isinstance(value, list):
            value[:] = [self.put_back(item) for item in value]
        return value


class _References:
    def __init__(self) -> None:
        self.keys: set[str] = set()

    def find(self, value: Any) -> None:
        if isinstance(value, str):
            found = _REFERENCE.fullmatch(value)
            if found:
                self.keys.add(found[1])
        elif isinstance(value, dict):
            for item in value.values():
                self.find(item)
        elif isinstance(value, list):
            for item in value:
                self.find(item)

"""A sample as the bytes of its member: condensed, compact, each part encoded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.log._condense import Condenser, has_long_text
from proctor.log._json import decode, encode, fields
from proctor.log._pool import EventList, MessagePool
from proctor.schema import EvalRetryError, EvalSample, Event, ModelEvent, UnknownEvent

__all__ = ["encode_sample"]

_CALL_KEYS = ("messages", "contents", "input", "inputs")  # where providers put the conversation
_CONDENSED = frozenset({"model", "tool", "state", "store", "info", "sample_init"})  # the events with long texts
# The format demands these though their value may be null.
_DEMANDED = {"info": "data", "sample_init": "state"}


def encode_sample(sample: EvalSample, *, images: bool = True) -> bytes:
    """``sample`` as JSON: messages and calls of model events pooled, long texts in attachments.

    Samples whose events come from a ``Transcript`` take its pool, which has each message as it was when recorded.
    Nothing of ``sample`` is changed. ``images=False`` leaves data URIs out.
    """
    body = fields(sample)
    events = body.pop("events", ())
    retries = body.pop("error_retries", None)
    condenser = Condenser(body.pop("attachments", None), images=images)
    known = body.pop("events_data", None)
    pool = events.pool if isinstance(events, EventList) and known is None and images else MessagePool(condenser, known)
    if pool.condenser is not condenser:
        condenser.attachments.update(pool.condenser.attachments)
        pool.condenser.attachments = condenser.attachments
    parts = [_body(body, condenser), b',"events":[', _events(events, condenser, pool), b"]"]
    if retries is not None:
        parts += [b',"error_retries":[', b",".join([_retry(item, condenser) for item in retries]), b"]"]
    shared = pool.encoded()
    if shared:
        parts += [b',"events_data":', shared]
    parts += [b',"attachments":', encode(condenser.attachments) if condenser.attachments else b"{}", b"}"]
    return b"".join(parts)


def _body(body: dict[str, Any], condenser: Condenser) -> bytes:
    """The sample without its events, and without the closing brace."""
    raw = encode(body)
    if b'"data:' in raw:
        tree = decode(raw)
        for name in ("input", "messages"):
            for message in tree[name] if isinstance(tree.get(name), list) else ():
                condenser.media(message.get("content"))
        raw = encode(tree)
    return raw[:-1]


def _retry(retry: EvalRetryError, condenser: Condenser) -> bytes:
    value = fields(retry)
    events = value.pop("events", None)
    raw = encode(value)
    if events is None:
        return raw
    return b'%b,"events":[%b]}' % (raw[:-1], _events(events, condenser, None))


def _events(events: Sequence[Event], condenser: Condenser, pool: MessagePool | None) -> bytes:
    parts: list[bytes] = []
    run: list[Event] = []  # events that are written as they are: one call of the encoder for all in a row
    for event in events:
        if event.__dict__["event"] in _CONDENSED:  # an attribute of a record costs three times as much
            if run:
                parts.append(encode(run)[1:-1])
                run = []
            parts.append(_event(event, condenser, pool))
        else:
            run.append(event)
    if run:
        parts.append(encode(run)[1:-1])
    return b",".join(parts)


def _event(event: Event, condenser: Condenser, pool: MessagePool | None) -> bytes:
    kind = event.event  # one of _CONDENSED
    demanded = _DEMANDED.get(kind)
    if demanded is not None and getattr(event, demanded, None) is None:
        raw = encode({**fields(event), demanded: None})
    elif isinstance(event, ModelEvent) and pool is not None:
        raw = encode(_pooled(event, pool))
    else:
        raw = encode(event)
    if not has_long_text(raw) or isinstance(event, UnknownEvent):
        return raw
    tree = decode(raw)
    condenser.event(kind, tree)
    return encode(tree)


def _pooled(event: ModelEvent, pool: MessagePool) -> dict[str, Any]:
    value = fields(event)
    if event.input:
        value["input"] = []
        value["input_refs"] = pool.refs_of(event)
    call = event.call
    if call is None or call.call_refs is not None:
        return value
    request = call.request
    for key in _CALL_KEYS:
        parts = request.get(key)
        if isinstance(parts, list):
            rest = {name: item for name, item in request.items() if name != key}
            refs = pool.call_ranges(parts)
            value["call"] = {**fields(call), "request": rest, "call_refs": refs, "call_key": key}
            break
    return value

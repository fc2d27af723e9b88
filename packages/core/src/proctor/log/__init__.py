"""Logs: the transcript of a sample, the ``.eval`` and ``.json`` formats, writing, reading and recovering them."""

from proctor.log._changes import json_changes
from proctor.log._clock import now_iso, now_iso_seconds
from proctor.log._store import Store, StoreModel, store, store_as, use_store
from proctor.log._transcript import Span, Transcript, span, span_id, transcript, use_transcript

__all__ = [
    "Span",
    "Store",
    "StoreModel",
    "Transcript",
    "json_changes",
    "now_iso",
    "now_iso_seconds",
    "span",
    "span_id",
    "store",
    "store_as",
    "transcript",
    "use_store",
    "use_transcript",
]

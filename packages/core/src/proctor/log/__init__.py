"""Logs: the transcript of a sample, the ``.eval`` and ``.json`` formats, writing, reading and recovering them."""

from proctor.log._changes import json_changes
from proctor.log._clock import now_iso, now_iso_seconds
from proctor.log._file_store import FileStore
from proctor.log._json import encode as to_json
from proctor.log._list import EvalLogInfo, list_eval_logs
from proctor.log._log_file import SampleNotFoundError
from proctor.log._memory_store import MemoryStore
from proctor.log._read import (
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
    read_eval_log_samples,
)
from proctor.log._recover import recover_eval_log
from proctor.log._rewrite import convert_eval_logs, write_eval_log
from proctor.log._store import Store, StoreModel, begin_store, store, store_as, use_store
from proctor.log._summary import summarise
from proctor.log._transcript import Span, Transcript, begin_transcript, span, span_id, transcript, use_transcript
from proctor.log._writer import LogWriter
from proctor.log._zip_read import BadLogError

__all__ = [
    "BadLogError",
    "EvalLogInfo",
    "FileStore",
    "LogWriter",
    "MemoryStore",
    "SampleNotFoundError",
    "Span",
    "Store",
    "StoreModel",
    "Transcript",
    "begin_store",
    "begin_transcript",
    "convert_eval_logs",
    "json_changes",
    "list_eval_logs",
    "now_iso",
    "now_iso_seconds",
    "read_eval_log",
    "read_eval_log_sample",
    "read_eval_log_sample_summaries",
    "read_eval_log_samples",
    "recover_eval_log",
    "span",
    "span_id",
    "store",
    "store_as",
    "summarise",
    "to_json",
    "transcript",
    "use_store",
    "use_transcript",
    "write_eval_log",
]

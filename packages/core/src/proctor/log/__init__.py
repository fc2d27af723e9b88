"""Logs: the transcript of a sample, the ``.eval`` and ``.json`` formats, writing, reading and recovering them."""

from proctor.log._changes import json_changes
from proctor.log._clock import now_iso, now_iso_seconds
from proctor.log._file_store import FileStore
from proctor.log._index import LogIndex, SampleState, index_eval_log
from proctor.log._json import encode as to_json
from proctor.log._list import EvalLogInfo, list_eval_logs
from proctor.log._location import join as join_location
from proctor.log._location import store_for
from proctor.log._log_file import SampleNotFoundError
from proctor.log._manifest import write_log_dir_manifest
from proctor.log._memory_store import MemoryStore
<<<<<<< HEAD
from proctor.log._patience import Patience
=======
from proctor.log._outcomes import Outcomes, error_kind
>>>>>>> 892e1dc (Say beside each metric which scores are missing and why, by one count for run, recovery, screen and JSON)
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
from proctor.schema import (
    ApprovalEvent,
    BaseEvent,
    ConfigUpdate,
    ErrorEvent,
    EvalConfig,
    EvalDataset,
    EvalError,
    EvalLog,
    EvalMetric,
    EvalPlan,
    EvalPlanStep,
    EvalResults,
    EvalRetryError,
    EvalRevision,
    EvalSample,
    EvalSampleLimit,
    EvalSampleReductions,
    EvalSampleScore,
    EvalSampleSummary,
    EvalScore,
    EvalScorer,
    EvalSpec,
    EvalStats,
    EvalStatus,
    Event,
    HeadlineMetric,
    InfoEvent,
    LoggerEvent,
    LoggingMessage,
    LogUpdate,
    ModelConfig,
    ModelEvent,
    SampleInitEvent,
    SampleLimitEvent,
    SandboxEvent,
    ScoreEditEvent,
    ScoreEvent,
    SpanBeginEvent,
    SpanEndEvent,
    StateEvent,
    StoreEvent,
    ToolEvent,
    UnknownEvent,
)

__all__ = [
    "ApprovalEvent",
    "BadLogError",
    "BaseEvent",
    "ConfigUpdate",
    "ErrorEvent",
    "EvalConfig",
    "EvalDataset",
    "EvalError",
    "EvalLog",
    "EvalLogInfo",
    "EvalMetric",
    "EvalPlan",
    "EvalPlanStep",
    "EvalResults",
    "EvalRetryError",
    "EvalRevision",
    "EvalSample",
    "EvalSampleLimit",
    "EvalSampleReductions",
    "EvalSampleScore",
    "EvalSampleSummary",
    "EvalScore",
    "EvalScorer",
    "EvalSpec",
    "EvalStats",
    "EvalStatus",
    "Event",
    "FileStore",
    "HeadlineMetric",
    "InfoEvent",
    "LogIndex",
    "LogUpdate",
    "LogWriter",
    "LoggerEvent",
    "LoggingMessage",
    "MemoryStore",
    "ModelConfig",
    "ModelEvent",
<<<<<<< HEAD
    "Patience",
=======
    "Outcomes",
>>>>>>> 892e1dc (Say beside each metric which scores are missing and why, by one count for run, recovery, screen and JSON)
    "SampleInitEvent",
    "SampleLimitEvent",
    "SampleNotFoundError",
    "SampleState",
    "SandboxEvent",
    "ScoreEditEvent",
    "ScoreEvent",
    "Span",
    "SpanBeginEvent",
    "SpanEndEvent",
    "StateEvent",
    "Store",
    "StoreEvent",
    "StoreModel",
    "ToolEvent",
    "Transcript",
    "UnknownEvent",
    "begin_store",
    "begin_transcript",
    "convert_eval_logs",
    "error_kind",
    "index_eval_log",
    "join_location",
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
    "store_for",
    "summarise",
    "to_json",
    "transcript",
    "use_store",
    "use_transcript",
    "write_eval_log",
    "write_log_dir_manifest",
]

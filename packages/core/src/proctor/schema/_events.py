"""What happened in a sample, event by event.

Only event types that the peer's reader knows are ever written; an unknown one that is read is kept as it was.
Timestamps are ISO 8601 in UTC; ``working_start`` is in seconds of the sample's working time (waits excluded).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from proctor.schema._base import Record
from proctor.schema._config import GenerateConfig
from proctor.schema._message import ChatMessage, Content
from proctor.schema._output import ModelCall, ModelOutput, ModelUsage
from proctor.schema._score import Score, ScoreEdit
from proctor.schema._tool import ToolCall, ToolCallContent, ToolCallError, ToolChoice, ToolInfo

__all__ = [
    "ApprovalEvent",
    "BaseEvent",
    "ErrorEvent",
    "Event",
    "InfoEvent",
    "LoggerEvent",
    "LoggingMessage",
    "ModelEvent",
    "SampleInitEvent",
    "SampleLimitEvent",
    "SandboxEvent",
    "ScoreEditEvent",
    "ScoreEvent",
    "SpanBeginEvent",
    "SpanEndEvent",
    "StateEvent",
    "StoreEvent",
    "ToolEvent",
    "UnknownEvent",
]


class BaseEvent(Record):
    """What all events have."""

    uuid: str | None = None
    span_id: str | None = None
    timestamp: str | float | None = None
    working_start: float | None = None
    metadata: dict[str, Any] | None = None
    pending: bool | None = None


class SampleInitEvent(BaseEvent):
    """The sample and its state before the first solver."""

    event: Literal["sample_init"] = "sample_init"
    sample: Any
    state: Any = None


class SampleLimitEvent(BaseEvent):
    """A limit ended the sample."""

    event: Literal["sample_limit"] = "sample_limit"
    type: str
    message: str
    limit: float | None = None


class SpanBeginEvent(BaseEvent):
    """A span begins; ``span_id`` equals ``id``."""

    event: Literal["span_begin"] = "span_begin"
    id: str
    parent_id: str | None = None
    type: str | None = None
    name: str


class SpanEndEvent(BaseEvent):
    """A span ends."""

    event: Literal["span_end"] = "span_end"
    id: str


class ModelEvent(BaseEvent):
    """One generate call. In a file ``input`` is empty and ``input_refs`` points into the sample's message pool."""

    event: Literal["model"] = "model"
    model: str
    role: str | None = None
    requested_model: str | None = None
    input: list[ChatMessage] = Field(default_factory=list)
    input_refs: list[tuple[int, int]] | None = None
    tools: list[ToolInfo] = Field(default_factory=list)
    tool_choice: ToolChoice = "auto"
    config: GenerateConfig = Field(default_factory=GenerateConfig)
    output: ModelOutput = Field(default_factory=ModelOutput)
    retries: int | None = None
    request_ids: list[dict[str, Any]] | None = None
    error: str | None = None
    traceback: str | None = None
    traceback_ansi: str | None = None
    cache: Literal["read", "write"] | None = None
    call: ModelCall | None = None
    completed: str | float | None = None
    working_time: float | None = None


class ToolEvent(BaseEvent):
    """One tool call and what came of it."""

    event: Literal["tool"] = "tool"
    type: Literal["function", "custom"] = "function"
    id: str
    function: str
    arguments: dict[str, Any]
    view: ToolCallContent | None = None
    result: str | int | float | bool | Content | list[Content] | None = None
    truncated: tuple[int, int] | None = None
    error: ToolCallError | None = None
    events: list[Any] = Field(default_factory=list)
    completed: str | float | None = None
    working_time: float | None = None
    agent: str | None = None
    agent_span_id: str | None = None
    failed: bool | None = None
    message_id: str | None = None


class StateEvent(BaseEvent):
    """What changed in the state: JSON Patch operations plus the value that was replaced."""

    event: Literal["state"] = "state"
    changes: list[dict[str, Any]]


class StoreEvent(BaseEvent):
    """What changed in the store: JSON Patch operations plus the value that was replaced."""

    event: Literal["store"] = "store"
    changes: list[dict[str, Any]]


class ScoreEvent(BaseEvent):
    """A score, intermediate or final."""

    event: Literal["score"] = "score"
    score: Score
    target: str | list[str] | None = None
    intermediate: bool = False
    scorer: str | None = None
    scorer_args: dict[str, Any] | None = None
    model_usage: dict[str, ModelUsage] | None = None
    role_usage: dict[str, ModelUsage] | None = None


class ScoreEditEvent(BaseEvent):
    """A score was changed afterwards."""

    event: Literal["score_edit"] = "score_edit"
    score_name: str
    edit: ScoreEdit


class ErrorEvent(BaseEvent):
    """The error that ended the sample (an ``EvalError`` as JSON)."""

    event: Literal["error"] = "error"
    error: dict[str, Any]


class InfoEvent(BaseEvent):
    """Anything worth noting; Proctor's own data has ``source="proctor"``."""

    event: Literal["info"] = "info"
    source: str | None = None
    data: Any


class LoggingMessage(Record):
    """A record of Python's logging; ``created`` is in milliseconds since the epoch."""

    name: str | None = None
    level: str
    message: str
    created: float
    filename: str | None = None
    module: str | None = None
    lineno: int | None = None


class LoggerEvent(BaseEvent):
    """A message that went through Python's logging."""

    event: Literal["logger"] = "logger"
    message: LoggingMessage


class SandboxEvent(BaseEvent):
    """An operation in a sandbox; ``result`` is the exit code of a command."""

    event: Literal["sandbox"] = "sandbox"
    action: Literal["exec", "read_file", "write_file"]
    cmd: str | None = None
    options: dict[str, Any] | None = None
    file: str | None = None
    input: str | None = None
    result: int | None = None
    output: str | None = None
    completed: str | float | None = None


class ApprovalEvent(BaseEvent):
    """A decision about a tool call."""

    event: Literal["approval"] = "approval"
    message: str
    call: ToolCall
    approver: str
    decision: Literal["approve", "modify", "reject", "escalate", "terminate"]
    view: dict[str, Any] | None = None
    modified: ToolCall | None = None
    explanation: str | None = None


class UnknownEvent(BaseEvent):
    """An event that this version has no class for (review, interrupt, compaction, ... or newer), kept as it was."""

    event: str


Event: TypeAlias = Annotated[
    Annotated[
        SampleInitEvent
        | SampleLimitEvent
        | SpanBeginEvent
        | SpanEndEvent
        | ModelEvent
        | ToolEvent
        | StateEvent
        | StoreEvent
        | ScoreEvent
        | ScoreEditEvent
        | ErrorEvent
        | InfoEvent
        | LoggerEvent
        | SandboxEvent
        | ApprovalEvent,
        Field(discriminator="event"),
    ]
    | UnknownEvent,
    Field(union_mode="left_to_right"),
]

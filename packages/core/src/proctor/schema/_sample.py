"""Samples: as a dataset gives them, and as a log keeps them."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from proctor.schema._base import Record, assembled
from proctor.schema._events import Event
from proctor.schema._message import ChatMessage
from proctor.schema._output import ModelOutput, ModelUsage
from proctor.schema._score import Provenance, Score

__all__ = [
    "EvalError",
    "EvalRetryError",
    "EvalSample",
    "EvalSampleLimit",
    "EvalSampleSummary",
    "EventsData",
    "Sample",
    "SandboxSpec",
]


_M = TypeVar("_M", bound=BaseModel)


class SandboxSpec(Record):
    """A sandbox: the provider's name and its configuration (a file or an object of the provider's own)."""

    type: str
    config: Any = None


class Sample(BaseModel):
    """One question of a dataset.

    ``input`` is a prompt or a conversation, ``target`` the ideal answer (or several), ``id`` unique in the dataset.
    ``files`` maps paths in the sandbox to text, data URIs or local paths; ``setup`` is a script run in the sandbox.
    """

    # Typing mistakes are refused here: a sample comes from an author, never from a newer log.
    model_config = ConfigDict(extra="forbid", protected_namespaces=(), arbitrary_types_allowed=True)

    input: str | list[ChatMessage]
    choices: list[str] | None = None
    target: str | list[str] = ""
    id: int | str | None = None
    metadata: dict[str, Any] | None = None
    sandbox: SandboxSpec | None = None
    files: dict[str, str] | None = None
    setup: str | None = None

    def __init__(
        self,
        input: str | list[ChatMessage],
        choices: list[str] | None = None,
        target: str | list[str] = "",
        id: int | str | None = None,
        metadata: dict[str, Any] | None = None,
        sandbox: SandboxSpec | tuple[str, Any] | str | None = None,
        files: dict[str, str] | None = None,
        setup: str | None = None,
        **unknown: Any,
    ) -> None:
        spec: Any = sandbox
        if isinstance(sandbox, str):
            spec = SandboxSpec(type=sandbox)
        elif isinstance(sandbox, tuple):
            spec = SandboxSpec(type=sandbox[0], config=sandbox[1])
        super().__init__(
            input=input,
            choices=choices,
            target=target,
            id=id,
            metadata=metadata,
            sandbox=spec,
            files=files,
            setup=setup,
            **unknown,
        )

    def with_id(self, id: int | str) -> Sample:
        """This sample under another id; it shares its values with this one."""
        if type(self) is not Sample:  # what a subclass keeps is its own affair
            return self.model_copy(update={"id": id})
        return assembled(Sample, {**self.__dict__, "id": id}, extra=False)

    def metadata_as(self, metadata_cls: type[_M]) -> _M:
        """The metadata as a pydantic model.

        Raises:
            pydantic.ValidationError: if the metadata does not fit.
        """
        return metadata_cls.model_validate(self.metadata or {})


class EvalError(Record):
    """An error that ended a sample or an evaluation."""

    message: str
    traceback: str
    traceback_ansi: str


class EvalRetryError(EvalError):
    """An error after which the sample was tried again."""

    events: list[Event] | None = None


LimitType: TypeAlias = Literal["context", "time", "working", "message", "token", "turn", "cost", "operator", "custom"]


class EvalSampleLimit(Record):
    """The limit that ended a sample. A limited sample is scored and has no error."""

    type: LimitType
    limit: float
    reason: str | None = None


class EventsData(Record):
    """What the events of a sample share: each message and call part once, referred to by ranges ``[start, end)``."""

    messages: list[ChatMessage] = Field(default_factory=list)
    calls: list[Any] = Field(default_factory=list)


class EvalSample(Record):
    """One sample, run once: everything that is known about it. Times are in seconds."""

    id: int | str
    epoch: int
    input: str | list[ChatMessage]
    choices: list[str] | None = None
    target: str | list[str]
    description: str | None = None
    sandbox: SandboxSpec | None = None
    files: list[str] | None = None
    setup: str | None = None
    messages: list[ChatMessage] = Field(default_factory=list)
    output: ModelOutput = Field(default_factory=ModelOutput)
    scores: dict[str, Score] | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    store: dict[str, Any] = Field(default_factory=dict)
    events: list[Event] = Field(default_factory=list)
    timelines: list[dict[str, Any]] | None = None
    model_usage: dict[str, ModelUsage] = Field(default_factory=dict)
    role_usage: dict[str, ModelUsage] = Field(default_factory=dict)
    model_fallbacks: Any = None
    started_at: str | None = None
    completed_at: str | None = None
    total_time: float | None = None
    working_time: float | None = None
    uuid: str | None = None
    invalidation: Provenance | None = None
    error: EvalError | None = None
    error_retries: list[EvalRetryError] | None = None
    attachments: dict[str, str] = Field(default_factory=dict)
    events_data: EventsData | None = None
    limit: EvalSampleLimit | None = None
    turn_count: int | None = None
    token_limit: int | None = None
    token_limit_type: str | None = None
    token_limit_usage: int | None = None
    message_limit: int | None = None
    time_limit: float | None = None


class EvalSampleSummary(Record):
    """What a table of samples shows of one sample; long texts are cut. ``invalidation`` is Proctor's own field."""

    id: int | str
    epoch: int
    input: str | list[ChatMessage]
    choices: list[str] | None = None
    target: str | list[str]
    description: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    scores: dict[str, Score] | None = None
    model_usage: dict[str, ModelUsage] = Field(default_factory=dict)
    role_usage: dict[str, ModelUsage] = Field(default_factory=dict)
    model_fallbacks: Any = None
    started_at: str | None = None
    completed_at: str | None = None
    total_time: float | None = None
    working_time: float | None = None
    uuid: str | None = None
    invalidation: Provenance | None = None
    error: str | None = None
    limit: str | None = None
    limit_reason: str | None = None
    retries: int | None = None
    completed: bool = False
    message_count: int | None = None
    turn_count: int | None = None
    token_limit: int | None = None
    token_limit_type: str | None = None
    token_limit_usage: int | None = None
    message_limit: int | None = None
    time_limit: float | None = None
    stop_reason: str | None = None

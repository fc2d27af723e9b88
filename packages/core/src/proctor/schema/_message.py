"""Messages and their content."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from proctor.schema._base import JsonValue, Record
from proctor.schema._tool import ToolCall, ToolCallError

__all__ = [
    "MEDIA_REMOVED",
    "ChatMessage",
    "ChatMessageAssistant",
    "ChatMessageBase",
    "ChatMessageSystem",
    "ChatMessageTool",
    "ChatMessageUser",
    "Content",
    "ContentAudio",
    "ContentBase",
    "ContentData",
    "ContentDocument",
    "ContentImage",
    "ContentReasoning",
    "ContentText",
    "ContentToolUse",
    "ContentVideo",
    "UnknownContent",
    "UnknownMessage",
    "content_parts",
    "message_changes",
]

MEDIA_REMOVED = "<base64-data-removed>"
"""What stands in a log in the place of an image, or of other data in base64, that was not kept (the peer's word)."""


class ContentBase(Record):
    """What all content has: room for a provider's own data, replayed to it byte for byte."""

    internal: JsonValue | None = None


class ContentText(ContentBase):
    """Text, perhaps with citations; ``refusal`` marks the model's refusal."""

    type: Literal["text"] = "text"
    text: str
    refusal: bool | None = None
    citations: list[dict[str, Any]] | None = None
    cache_breakpoint: Any = None


class ContentReasoning(ContentBase):
    """A model's reasoning. ``redacted`` means that ``reasoning`` is opaque to everyone but the provider."""

    type: Literal["reasoning"] = "reasoning"
    reasoning: str
    summary: str | None = None
    signature: str | None = None
    redacted: bool = False


class ContentImage(ContentBase):
    """An image: an http(s) URL, a data URI, or (in a dataset) a file path."""

    type: Literal["image"] = "image"
    image: str
    detail: Literal["auto", "low", "high", "original"] = "auto"


class ContentAudio(ContentBase):
    """Audio: a URL, a data URI, or (in a dataset) a file path."""

    type: Literal["audio"] = "audio"
    audio: str
    format: Literal["wav", "mp3"]


class ContentVideo(ContentBase):
    """Video: a URL, a data URI, or (in a dataset) a file path."""

    type: Literal["video"] = "video"
    video: str
    format: Literal["mp4", "mpeg", "mov"]


class ContentDocument(ContentBase):
    """A document such as a PDF: a URL, a data URI, or (in a dataset) a file path."""

    type: Literal["document"] = "document"
    document: str
    filename: str = ""
    mime_type: str = ""
    citations: bool = False


class ContentData(ContentBase):
    """Provider data that has no other form."""

    type: Literal["data"] = "data"
    data: dict[str, Any]


class ContentToolUse(ContentBase):
    """A tool that ran on the provider's side."""

    type: Literal["tool_use"] = "tool_use"
    tool_type: Literal["web_search", "mcp_call", "code_execution"]
    id: str
    name: str
    context: str | None = None
    arguments: Any = None
    result: Any = None
    error: str | None = None


class UnknownContent(Record):
    """Content of a type that this version does not know, kept as it was."""

    type: str


Content: TypeAlias = Annotated[
    Annotated[
        ContentText
        | ContentReasoning
        | ContentImage
        | ContentAudio
        | ContentVideo
        | ContentDocument
        | ContentData
        | ContentToolUse,
        Field(discriminator="type"),
    ]
    | UnknownContent,
    Field(union_mode="left_to_right"),
]


_changes = 0


def content_parts(content: str | list[Content]) -> list[Content]:
    """``content`` as a list: text alone becomes one part."""
    return [ContentText(text=content)] if isinstance(content, str) else content


def message_changes() -> int:
    """How often an attribute of any message was set after the message was made.

    While it stands still, messages that were recorded once need not be compared with their record.
    """
    return _changes


class ChatMessageBase(Record):
    """What all messages have. ``content`` is text or a list of content parts."""

    id: str | None = None
    content: str | list[Content]
    source: Literal["input", "generate", "operator"] | None = None
    metadata: dict[str, Any] | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        global _changes
        _changes += 1
        super().__setattr__(name, value)

    @property
    def text(self) -> str:
        """The text of the message: its text parts joined by newlines, other content left out."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, ContentText))

    @text.setter
    def text(self, text: str) -> None:
        if isinstance(self.content, str):
            self.content = text
        else:
            # It stands where the first text stood: whether a question comes before its image matters to models.
            parts = self.content
            at = next((index for index, part in enumerate(parts) if isinstance(part, ContentText)), len(parts))
            others = [part for part in parts[at:] if not isinstance(part, ContentText)]
            self.content = [*parts[:at], ContentText(text=text), *others]


class ChatMessageSystem(ChatMessageBase):
    """A system message."""

    role: Literal["system"] = "system"


class ChatMessageUser(ChatMessageBase):
    """A user message."""

    role: Literal["user"] = "user"
    tool_call_id: list[str] | None = None


class ChatMessageAssistant(ChatMessageBase):
    """What a model said."""

    role: Literal["assistant"] = "assistant"
    tool_calls: list[ToolCall] | None = None
    model: str | None = None


class ChatMessageTool(ChatMessageBase):
    """What a tool answered."""

    role: Literal["tool"] = "tool"
    tool_call_id: str | None = None
    function: str | None = None
    error: ToolCallError | None = None


class UnknownMessage(ChatMessageBase):
    """A message of a role that this version does not know, kept as it was."""

    role: str


ChatMessage: TypeAlias = Annotated[
    Annotated[
        ChatMessageSystem | ChatMessageUser | ChatMessageAssistant | ChatMessageTool,
        Field(discriminator="role"),
    ]
    | UnknownMessage,
    Field(union_mode="left_to_right"),
]

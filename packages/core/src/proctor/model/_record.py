"""What the transcript keeps of a generate call: its event, and the raw call of some."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from proctor.contracts import CallRecord
from proctor.registry import loggable
from proctor.schema import (
    MEDIA_REMOVED,
    ChatMessage,
    ContentImage,
    GenerateConfig,
    ModelCall,
    ModelOutput,
    redact,
    redact_text,
    redact_url,
)

__all__ = [
    "KEPT_CALLS",
    "ModelLogging",
    "configure_model_logging",
    "loggable_args",
    "loggable_config",
    "loggable_url",
    "model_logging",
]

KEPT_CALLS = 5
"""How many successful raw calls of one model in one sample are kept when nothing else is said."""

_DATA_URI = re.compile(r"(data:[\w.+/-]*(?:;[\w.=+-]+)*;base64,).*", re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9+/_=\r\n-]+")
_TEXTUAL = frozenset({"text", "reasoning", "tool_use"})
_BASE64_KEYS = frozenset({"b64_json", "bytes", "data", "file_data"})


class ModelLogging:
    """What is kept of raw calls and images, and how many calls of each model were kept so far."""

    __slots__ = ("_kept", "log_images", "log_model_api")

    def __init__(self, log_model_api: bool | None = None, log_images: bool = True) -> None:
        self.log_model_api = log_model_api
        self.log_images = log_images
        self._kept: dict[str, int] = {}

    def call(
        self,
        record: CallRecord,
        model: str,
        messages: Sequence[ChatMessage],
        output: ModelOutput | None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> ModelCall | None:
        """The raw call as the log keeps it, or None.

        A failed call (without ``output``) is always kept; of the others all, none, or the first five of a model. Media
        are looked for only where the messages have some: the search would cost more than the rest of the record.
        Likewise secrets: a request has them only where the extra body put them (``extra_body`` is that as the log may
        have it), a response where it tells of an error.
        """
        error = output is None
        if record.request is None:
            return None
        if not error and self.log_model_api is not True:
            kept = self._kept.get(model, 0)
            if self.log_model_api is False or kept >= KEPT_CALLS:
                return None
            self._kept[model] = kept + 1
        request, response = record.request, record.response
        if extra_body and isinstance(request, dict):
            request = {**request, **{name: kept for name, kept in extra_body.items() if name in request}}
        if error:
            response = _quoted(redact(response))
        return ModelCall.trusted(
            request=without_media(request) if has_media(messages) else request,
            response=without_media(response) if output is None or _says_media(output) else response,
            time=record.time,
            error=True if error else None,
        )

    def input(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """The messages for the event: a new list of the same objects, images taken out when they are not logged."""
        if self.log_images:
            return list(messages)
        return [_without_images(message) for message in messages]


_default = ModelLogging()
_logging: ContextVar[ModelLogging] = ContextVar("proctor_model_logging", default=_default)


def model_logging() -> ModelLogging:
    """What holds in this context."""
    return _logging.get()


def configure_model_logging(log_model_api: bool | None = None, log_images: bool = True) -> None:
    """Say what model events keep from here on; called at the start of each sample, whose first calls are counted anew.

    Args:
        log_model_api: True keeps every raw call, False only those that failed, None also the first five successful ones
            of each model in each sample.
        log_images: False replaces images (data URIs) in the input of model events.
    """
    _logging.set(ModelLogging(log_model_api, log_images))


def loggable_config(config: GenerateConfig) -> GenerateConfig:
    """``config`` as the log may have it: without the credentials in extra headers and in the extra body."""
    changes = {}
    for name, value in (("extra_headers", config.extra_headers), ("extra_body", config.extra_body)):
        if value and (kept := redact(value)) is not value:
            changes[name] = kept
    return config.model_copy(update=changes) if changes else config


def loggable_args(args: Mapping[str, Any]) -> dict[str, Any]:
    """Model arguments as the log may have them: those that are credentials by their name lose their values."""
    return dict(loggable(args))


def loggable_url(url: str | None) -> str | None:
    """``url`` without the user, the password and the keys that it may carry."""
    return None if url is None else redact_url(url)


def _quoted(value: Any) -> Any:
    """An error response without what it repeats of the credentials: services quote what they refuse."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return {key: _quoted(item) for key, item in value.items()}
    return [_quoted(item) for item in value] if isinstance(value, list) else value


def _without_images(message: ChatMessage) -> ChatMessage:
    if isinstance(message.content, str):
        return message
    content = [
        part.model_copy(update={"image": MEDIA_REMOVED})
        if isinstance(part, ContentImage) and part.image.startswith("data:")
        else part
        for part in message.content
    ]
    return message.model_copy(update={"content": content})


def has_media(messages: Iterable[ChatMessage]) -> bool:
    """Whether any message has content other than text, reasoning and tool use."""
    for message in messages:
        if not isinstance(message.content, str):
            for part in message.content:
                if part.type not in _TEXTUAL:
                    return True
    return False


def _says_media(output: ModelOutput) -> bool:
    return has_media([choice.message for choice in output.choices])


def without_media(value: Any, key: str = "") -> Any:
    """``value`` (JSON data) with base64 media replaced by a marker; what has none is returned as it is, not copied."""
    if isinstance(value, str):
        if len(value) < 200:
            return value
        if value.startswith("data:"):
            return _DATA_URI.sub(lambda found: found.group(1) + MEDIA_REMOVED, value)
        return MEDIA_REMOVED if key in _BASE64_KEYS and _BASE64.fullmatch(value) else value
    if isinstance(value, dict):
        changed = {k: new for k, v in value.items() if (new := without_media(v, k)) is not v}
        return {**value, **changed} if changed else value
    if isinstance(value, list):
        items = [without_media(item, key) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value

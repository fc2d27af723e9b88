"""Images, audio, documents and video in the forms that requests take."""

from __future__ import annotations

import base64
import mimetypes
from pathlib import Path
from typing import Any

import anyio.to_thread

from proctor.schema import (
    ChatMessage,
    Content,
    ContentAudio,
    ContentDocument,
    ContentImage,
    ContentVideo,
)

__all__ = ["base64_of", "has_files", "inline_files", "mime_type"]

_FIELDS = {"image": "image", "audio": "audio", "video": "video", "document": "document"}


def _is_file(part: Content) -> bool:
    field = _FIELDS.get(part.type)
    return field is not None and not str(getattr(part, field)).startswith(("data:", "http://", "https://"))


def has_files(messages: list[ChatMessage]) -> bool:
    """Whether any content is given as a path on this machine."""
    for message in messages:
        if not isinstance(message.content, str):
            for part in message.content:
                if _is_file(part):
                    return True
    return False


async def inline_files(messages: list[ChatMessage]) -> list[ChatMessage]:
    """``messages`` with paths replaced by data URIs; files are read in a thread."""
    return await anyio.to_thread.run_sync(lambda: [_inline(message) for message in messages])


def _inline(message: ChatMessage) -> ChatMessage:
    if isinstance(message.content, str) or not any(_is_file(part) for part in message.content):
        return message
    content = [_read(part) if _is_file(part) else part for part in message.content]
    return message.model_copy(update={"content": content})


def _read(part: Any) -> Content:
    field = _FIELDS[part.type]
    path = Path(str(getattr(part, field)).removeprefix("file://"))
    try:
        data = base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError as error:
        raise ValueError(f"cannot read the {part.type} {str(path)!r}: {error.strerror or error}") from None
    update = {field: f"data:{mime_type(part, path.name)};base64,{data}"}
    if isinstance(part, ContentDocument) and not part.filename:
        update["filename"] = path.name
    copy: Content = part.model_copy(update=update)
    return copy


def mime_type(part: Content, name: str = "") -> str:
    """The media type of ``part``, from what it says or from a file name."""
    if isinstance(part, ContentAudio):
        return {"wav": "audio/wav", "mp3": "audio/mpeg"}[part.format]
    if isinstance(part, ContentVideo):
        return {"mp4": "video/mp4", "mpeg": "video/mpeg", "mov": "video/quicktime"}[part.format]
    if isinstance(part, ContentDocument) and part.mime_type:
        return part.mime_type
    guessed = mimetypes.guess_type(name)[0]
    return guessed or ("image/png" if isinstance(part, ContentImage) else "application/octet-stream")


def base64_of(uri: str) -> str:
    """The base64 text of a data URI.

    Raises:
        ValueError: for anything else; the service takes the data itself, not an address.
    """
    head, comma, data = uri.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        raise ValueError(f"this service takes the data itself: give a file or a base64 data URI, not {uri[:60]!r}")
    return data

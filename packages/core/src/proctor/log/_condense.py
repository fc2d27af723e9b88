"""Long texts out of events and media out of messages, into the sample's attachments."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any

from proctor.schema import MEDIA_REMOVED

__all__ = ["LONG", "Condenser", "has_long_text"]

LONG = 100
"""Texts of more characters than this become attachments."""

_PREFIX = "attachment://"
_BACKSLASH = ord("\\")
_UNLOCKED = 2048  # bytes from which hashlib lets go of the interpreter lock
_RUN = re.compile(rb'"[^"]{%d}' % (LONG + 1))
# Where the peer puts attachments back, found by trying each field; a reference anywhere else stays a reference.
_MEDIA = frozenset({"image", "audio", "video", "document"})
_TEXTS = {
    "text": ("text",),
    "reasoning": ("reasoning",),
    "data": ("data",),
    "tool_use": ("arguments", "result", "error"),
    **{name: (name,) for name in _MEDIA},
}


def has_long_text(data: bytes) -> bool:
    """Whether the JSON text ``data`` may hold a string of more than 100 characters; ``False`` is certain."""
    if _RUN.search(data) is not None:
        return True
    # A long string may be full of escaped quotes. One byte is found many times faster than two, and as a number.
    return _BACKSLASH in data and b'\\"' in data


def _key(text: str) -> str:
    # Readers take any hex key; blake2b is in the standard library, the peer's MurmurHash is not.
    raw = text.encode("utf-8", "surrogatepass")
    if not _UNLOCKED <= len(raw) <= 100_000:
        return blake2b(raw, digest_size=16).hexdigest()
    # In pieces for which hashlib keeps the interpreter lock: taking it back from a busy event loop costs up to 5 ms.
    digest, view = blake2b(digest_size=16), memoryview(raw)
    for start in range(0, len(raw), _UNLOCKED - 1):
        digest.update(view[start : start + _UNLOCKED - 1])
    return digest.hexdigest()


class Condenser:
    """Collects the attachments of one sample.

    Args:
        attachments: those the sample has already.
        images: ``False`` puts a marker in the place of every data URI, and keeps none of them.
    """

    __slots__ = ("attachments", "images")

    def __init__(self, attachments: dict[str, str] | None = None, *, images: bool = True) -> None:
        self.attachments: dict[str, str] = dict(attachments) if attachments else {}
        self.images = images

    def text(self, value: str) -> str:
        """A reference to ``value``, which becomes an attachment."""
        if not self.images and value.startswith("data:"):
            return MEDIA_REMOVED
        key = _key(value)
        self.attachments[key] = value
        return _PREFIX + key

    def texts(self, value: Any) -> Any:
        """JSON data with every long string replaced (containers are changed in place)."""
        if isinstance(value, str):
            return self.text(value) if len(value) > LONG else value
        if isinstance(value, dict):
            for key, item in value.items():
                if isinstance(item, (str, dict, list)):
                    value[key] = self.texts(item)
        elif isinstance(value, list):
            value[:] = [self.texts(item) if isinstance(item, (str, dict, list)) else item for item in value]
        return value

    def message(self, message: Any) -> Any:
        """A message as JSON data with the long texts of its content replaced (changed in place)."""
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            message["content"] = self.texts(content)
        elif isinstance(content, list):
            for part in content:
                if isinstance(part, dict):
                    for name in _TEXTS.get(part.get("type", ""), ()):
                        if name in part:
                            part[name] = self.texts(part[name])
        return message

    def media(self, content: Any) -> None:
        """Replace the data URIs in content (JSON data, changed in place); texts stay."""
        for part in content if isinstance(content, list) else [content]:
            name = part.get("type") if isinstance(part, dict) else None
            if name in _MEDIA:
                value = part.get(name)
                if isinstance(value, str) and len(value) > LONG and value.startswith("data:"):
                    part[name] = self.text(value)

    def event(self, kind: str, event: dict[str, Any]) -> None:
        """Replace the long texts of an event (JSON data, changed in place) where readers look for them."""
        if kind == "model":
            self._model(event)
        elif kind == "tool":
            self.texts(event["arguments"])
            self.media(event.get("result"))
        elif kind in ("state", "store"):
            for change in event["changes"]:
                if "value" in change:
                    change["value"] = self.texts(change["value"])
        elif kind == "info":
            event["data"] = self.texts(event["data"])
        elif kind == "sample_init":
            event["state"] = self.texts(event["state"])
            sample = event["sample"]
            given = sample.get("input") if isinstance(sample, dict) else None
            if isinstance(given, str):
                sample["input"] = self.texts(given)
            elif isinstance(given, list):
                for message in given:
                    self.message(message)

    def _model(self, event: dict[str, Any]) -> None:
        for message in event["input"]:
            self.message(message)
        for tool in event["tools"]:
            tool["description"] = self.texts(tool.get("description", ""))
        for choice in event["output"]["choices"]:
            self.message(choice["message"])
        self.texts(event.get("call"))

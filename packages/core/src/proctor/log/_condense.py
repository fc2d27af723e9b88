"""Long texts out of events and media out of messages, into the sample's attachments."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

__all__ = ["LONG", "Condenser", "has_long_text"]

LONG = 100
"""Texts of more characters than this become attachments."""

_PREFIX = "attachment://"
_REMOVED = "<base64-data-removed>"


def has_long_text(data: bytes) -> bool:
    """Whether the JSON text ``data`` may hold a string of more than 100 characters; ``False`` is certain.

    It leaps from quote to quote backwards, so short strings are passed a hundred bytes at a time.
    """
    rfind = data.rfind
    place, end = 0, len(data) - LONG
    while place < end:
        quote = rfind(b'"', place, place + LONG + 1)
        if quote < 0:
            return True
        place = quote + 1
    return b'\\"' in data  # a long string may be full of escaped quotes


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
            return _REMOVED
        # Readers take any hex key; blake2b is in the standard library, the peer's MurmurHash is not.
        key = blake2b(value.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
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

    def media(self, value: Any) -> Any:
        """JSON data with every long data URI replaced (containers are changed in place)."""
        if isinstance(value, str):
            return self.text(value) if len(value) > LONG and value.startswith("data:") else value
        if isinstance(value, dict):
            for key, item in value.items():
                if isinstance(item, (str, dict, list)):
                    value[key] = self.media(item)
        elif isinstance(value, list):
            value[:] = [self.media(item) if isinstance(item, (str, dict, list)) else item for item in value]
        return value

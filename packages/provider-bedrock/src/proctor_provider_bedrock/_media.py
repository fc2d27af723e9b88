"""Images, documents, audio and video as Converse takes them: the data itself, or a place in S3."""

from __future__ import annotations

import base64
import binascii
import mimetypes
import re
from pathlib import Path
from typing import Any

from proctor.schema import ContentAudio, ContentDocument, ContentImage, ContentVideo

__all__ = ["audio_block", "document_block", "image_block", "video_block"]

_DATA_URI = re.compile(r"data:([\w.+/-]*)((?:;[\w.=+-]+)*?)(;base64)?,", re.ASCII)
_IMAGES = {"jpg": "jpeg", "jpeg": "jpeg", "png": "png", "gif": "gif", "webp": "webp"}
_DOCUMENTS = {name: name for name in ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")} | {
    "htm": "html"
}
_BY_TYPE = {
    "text/plain": "txt",
    "text/markdown": "md",
    "text/csv": "csv",
    "text/html": "html",
    "application/pdf": "pdf",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9\-()\[\] ]+")


def image_block(part: ContentImage) -> dict[str, Any]:
    """An image of a message or of a tool's result."""
    source, kind = _source(part.image, "image")
    form = _IMAGES.get(kind)
    if form is None:
        raise ValueError(f"Bedrock takes png, jpeg, gif and webp images, not {kind or 'one of an unknown form'}")
    return {"image": {"format": form, "source": source}}


def audio_block(part: ContentAudio) -> dict[str, Any]:
    """Audio of a message."""
    return {"audio": {"format": part.format, "source": _source(part.audio, "audio")[0]}}


def video_block(part: ContentVideo) -> dict[str, Any]:
    """A video of a message."""
    return {"video": {"format": part.format, "source": _source(part.video, "video")[0]}}


def document_block(part: ContentDocument, taken: set[str]) -> dict[str, Any]:
    """A document of a message.

    Args:
        part: the document.
        taken: the names of the request's documents so far; each has one of its own.
    """
    source, kind = _source(part.document, "document")
    form = _BY_TYPE.get(part.mime_type) or _DOCUMENTS.get(kind)
    form = form or _DOCUMENTS.get(part.filename.rpartition(".")[2].lower())
    if form is None:
        raise ValueError(
            f"Bedrock takes documents of the types {', '.join(_DOCUMENTS)}, not {kind or 'an unknown one'}"
        )
    stem = part.filename.rpartition(".")[0] or part.filename
    name = " ".join(_NOT_IN_NAMES.sub(" ", stem).split())[:180] or "document"
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name} ({number})", number + 1
    taken.add(unique)
    document: dict[str, Any] = {"format": form, "name": unique, "source": source}
    if part.citations:
        document["citations"] = {"enabled": True}
    return {"document": document}


def _source(value: str, what: str) -> tuple[dict[str, Any], str]:
    """Where the data are, and their type as a file's ending."""
    if value.startswith("s3://"):
        return {"s3Location": {"uri": value}}, _ending(value)
    if value.startswith(("http://", "https://")):
        raise ValueError(
            f"Bedrock fetches no {what} from an address: give a file, a data URI or s3://..., not {value[:80]!r}"
        )
    found = _DATA_URI.match(value)
    if found is not None:
        if not found[3]:
            raise ValueError(f"the {what} is a data URI without base64: {value[:60]!r}")
        try:
            data = base64.b64decode(value[found.end() :], validate=True)
        except binascii.Error as error:
            raise ValueError(f"the {what} is no base64: {error}") from None
        return {"bytes": data}, _kind(found[1])
    path = Path(value.removeprefix("file://"))
    try:
        return {"bytes": path.read_bytes()}, _ending(path.name)
    except OSError as error:
        raise ValueError(f"cannot read the {what} {str(path)!r}: {error.strerror or error}") from None


def _kind(media_type: str) -> str:
    """The usual ending of files of a type."""
    known = _BY_TYPE.get(media_type)
    return known or (mimetypes.guess_extension(media_type) or media_type.rpartition("/")[2]).removeprefix(".").lower()


def _ending(name: str) -> str:
    return name.rpartition(".")[2].lower()

"""Paths in a dataset: relative ones are relative to the dataset's own file."""

from __future__ import annotations

import os
from collections.abc import Callable

from proctor.schema import (
    ContentAudio,
    ContentDocument,
    ContentImage,
    ContentVideo,
    Sample,
    SandboxSpec,
)

_LONGEST_PATH = 1024


def path_resolver(folder: str | None) -> Callable[[Sample], Sample]:
    """What makes the paths of a sample absolute: those of files that exist in ``folder`` (``None``: leave all as is).

    Paths stand in ``files`` (as contents), ``setup``, the configuration of ``sandbox``, and media of messages. What
    names no file there is left alone: it may be the content itself.
    """
    if folder is None:
        return lambda sample: sample
    known: dict[str, str] = {}

    def resolve(value: str) -> str:
        if not value or len(value) > _LONGEST_PATH or "\n" in value or "\0" in value or value.startswith("data:"):
            return value
        if value not in known:
            path = os.path.join(folder, value)
            found = path if os.path.isfile(path) else value
            if len(known) > 10_000:
                known.clear()
            known[value] = found
        return known[value]

    def finish(sample: Sample) -> Sample:
        if sample.files:
            sample.files = {name: resolve(content) for name, content in sample.files.items()}
        if sample.setup:
            sample.setup = resolve(sample.setup)
        if sample.sandbox is not None and isinstance(sample.sandbox.config, str):
            sample.sandbox = SandboxSpec(type=sample.sandbox.type, config=resolve(sample.sandbox.config))
        if not isinstance(sample.input, str):
            _resolve_media(sample, resolve)
        return sample

    return finish


def _resolve_media(sample: Sample, resolve: Callable[[str], str]) -> None:
    for message in sample.input:
        if isinstance(message, str) or isinstance(message.content, str):
            continue
        for part in message.content:
            if isinstance(part, ContentImage):
                part.image = resolve(part.image)
            elif isinstance(part, ContentAudio):
                part.audio = resolve(part.audio)
            elif isinstance(part, ContentVideo):
                part.video = resolve(part.video)
            elif isinstance(part, ContentDocument):
                part.document = resolve(part.document)

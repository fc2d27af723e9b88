"""Building an image by the engine's API."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from docker import APIClient
from docker.errors import APIError, ImageNotFound

from proctor.contracts import PrerequisiteError
from proctor_sandbox_docker._context import BuildContext
from proctor_sandbox_docker._progress import BuildProgress, error_of
from proctor_sandbox_docker.compose import ServiceSpec

__all__ = ["build_image", "image_id"]

_LINES = 25
"""Of a build's output that an error shows."""
_LABEL = "proctor.build"
_NEEDS_BUILDKIT = ("buildkit", "unknown flag:", "unknown instruction:")


def build_image(client: APIClient, context: BuildContext, tag: str, service: ServiceSpec, seconds: float) -> str:
    """Build an image; blocks.

    Args:
        client: of the engine.
        context: what it is built from.
        tag: that it gets; another one if images that it starts from came with the build.
        service: that it is for.
        seconds: that the engine may take for a step.

    Returns:
        The tag that it has.

    Raises:
        PrerequisiteError: it fails; the message has the last lines of its output.
    """
    what = f"the image of service {service.name!r} ({context.build.context})"
    progress = BuildProgress(what)
    lines: deque[str] = deque(maxlen=_LINES)
    error = _build(client, context, tag, service.platform, progress, lines, seconds)
    if error is not None:
        hint = ""
        if _needs_buildkit(error, lines):
            hint = (
                ". It may need BuildKit, which the engine's API does not offer: build it yourself "
                "(docker buildx build --load -t NAME FOLDER) and name the image instead"
            )
        said = ". Its last lines:\n" + "\n".join(f"  {line}" for line in lines) if lines else ""
        raise PrerequisiteError(f"sandbox docker: building {what} failed: {error}{hint}{said}")
    progress.end()
    final = context.tag(lambda name: image_id(client, name))
    if final != tag:
        repository, _, own = final.rpartition(":")
        client.tag(tag, repository, own)
        client.remove_image(tag)  # only the name: the image has the other one now
    return final


def image_id(client: APIClient, name: str) -> str | None:
    """The id of an image that is there; ``None`` if there is none. Blocks."""
    try:
        return str(client.inspect_image(name)["Id"])
    except ImageNotFound:
        return None


def _build(
    client: APIClient,
    context: BuildContext,
    tag: str,
    platform: str | None,
    progress: BuildProgress,
    lines: deque[str],
    seconds: float,
) -> str | None:
    """What went wrong, or ``None``."""
    build = context.build
    with context.archive() as archive:
        try:
            events = client.build(
                fileobj=archive,
                custom_context=True,
                dockerfile=context.inside,
                tag=tag,
                rm=True,
                forcerm=True,
                buildargs=dict(build.args),
                target=build.target or "",
                platform=platform,
                labels={**build.labels, _LABEL: context.digest},
                decode=True,
                timeout=seconds,
            )
            for event in events:
                _see(str(event.get("stream") or event.get("status") or "").splitlines(), progress, lines)
                if error := error_of(event):
                    return error
        except APIError as error:
            return str(error.explanation or error)
    return None


def _see(said: Iterable[str], progress: BuildProgress, lines: deque[str]) -> None:
    for line in said:
        if line.strip():
            lines.append(line.rstrip())
            progress.see(line)


def _needs_buildkit(error: str, lines: Iterable[str]) -> bool:
    text = "\n".join((error, *lines)).lower()
    return any(sign in text for sign in _NEEDS_BUILDKIT)

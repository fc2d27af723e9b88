"""One tool call: arguments checked, tool called, failure put into words, output cut, event recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from proctor.contracts import OutputLimitExceededError
from proctor.limits import LimitExceededError, limit_in, sample_limits
from proctor.log import now_iso, transcript
from proctor.monitor import doing
from proctor.schema import (
    ChatMessage,
    ChatMessageTool,
    Content,
    ContentBase,
    ModelOutput,
    ToolCall,
    ToolCallContent,
    ToolCallError,
    ToolEvent,
    quick_id,
    redact_text,
)
from proctor.tool._def import ToolDef
from proctor.tool._signature import tool_signature
from proctor.tool._tool import ToolError
from proctor.tool._truncate import truncate_output
from proctor.tool._validate import problems

__all__ = ["CallResult", "run_call"]


class CallResult(NamedTuple):
    """The answer to a call, what follows it, and the arguments as the tool got them."""

    message: ChatMessageTool
    arguments: dict[str, Any]
    error: ToolCallError | None = None
    messages: Sequence[ChatMessage] = ()
    output: ModelOutput | None = None


class _ParsingError(Exception):
    """The call doesn't fit the tool; the message is for the model."""


async def run_call(
    call: ToolCall,
    definition: ToolDef | None,
    max_output: int | None = None,
    *,
    agent: str | None = None,
    agent_span_id: str | None = None,
) -> CallResult:
    """Run ``call`` with ``definition`` (``None``: there is no such tool) and record it."""
    event = ToolEvent(
        id=call.id,
        function=call.function,
        arguments=call.arguments,
        view=_view(call, definition),
        pending=True,
        agent=agent,
        agent_span_id=agent_span_id,
    )
    transcript().event(event)
    limits = sample_limits()
    started = limits.working_time() if limits is not None else 0.0
    content: str | list[Content] = ""
    error: ToolCallError | None = None
    arguments: dict[str, Any] = {}
    event.failed = True  # until the end is reached
    try:
        arguments = _arguments(call, definition)
        assert definition is not None  # _arguments has said so otherwise
        with doing("tool", call.function):
            content = _content(await definition.tool(**arguments))
        event.failed = None
    except Exception as failure:
        exceeded = limit_in(failure)
        if exceeded is not None and not exceeded.of_part:
            event.error = ToolCallError(type="limit", message=str(exceeded))
            raise
        told = _told(failure)
        if told is None:
            said = redact_text(f"{type(failure).__name__}: {failure}")
            event.error = ToolCallError(type="unknown", message=said)
            raise
        content, error = told
        error.message = redact_text(error.message, forms=False)  # the task's own passwords are the model's business
        event.failed = None
    finally:
        event.pending = None
        event.completed = now_iso()
        event.working_time = limits.working_time() - started if limits is not None else None
    message = ChatMessageTool(id=quick_id(), content=content, tool_call_id=call.id, function=call.function, error=error)
    if isinstance(content, str):
        own = definition.max_output if definition is not None else None
        cut = truncate_output(call.function, content, max_output if own is None else own)
        if cut is not None:
            message.content = cut.text
            event.truncated = (cut.before, cut.after)
    event.result, event.error, event.message_id = message.content, error, message.id
    return CallResult(message, arguments, error)


def _arguments(call: ToolCall, definition: ToolDef | None) -> dict[str, Any]:
    if definition is None:
        raise _ParsingError(f"there is no tool named {call.function!r}")
    if call.parse_error is not None:
        raise _ParsingError(call.parse_error)
    wrong = problems(call.arguments, definition.parameters)
    if wrong:
        raise _ParsingError(
            f"the arguments of {call.function} are not valid:\n" + "\n".join(f"- {problem}" for problem in wrong)
        )
    try:
        arguments = tool_signature(definition.tool).convert(call.arguments)
    except ValueError as error:
        raise _ParsingError(f"the arguments of {call.function} are not valid:\n- {error}") from error
    _log_repairs(call, arguments)
    return arguments


def _log_repairs(call: ToolCall, arguments: dict[str, Any]) -> None:
    """Note whole numbers that were written as 2.0: the one thing that is mended (JSON knows one kind of number)."""
    mended = {
        name: value
        for name, value in call.arguments.items()
        if isinstance(value, float) and type(arguments[name]) is int
    }
    if mended:
        transcript().info({"tool_call": call.id, "read_as_integers": mended}, source="proctor")


def _view(call: ToolCall, definition: ToolDef | None) -> ToolCallContent | None:
    if definition is None or definition.viewer is None:
        return call.view
    try:
        return definition.viewer(call).call
    except Exception:  # a viewer is decoration, and its arguments come unchecked from a model
        return call.view


def _content(result: Any) -> str | list[Content]:
    if isinstance(result, ContentBase):
        return [result]  # type: ignore[list-item]  # every subclass of ContentBase is a Content
    if isinstance(result, list) and all(isinstance(part, ContentBase) for part in result):
        return result
    return result if type(result) is str else str(result)


def _told(failure: Exception) -> tuple[str, ToolCallError] | None:
    """What the model is told of ``failure``; ``None`` when it is none of the model's business."""
    match failure:
        case _ParsingError():
            return "", ToolCallError(type="parsing", message=str(failure))
        case ToolError():
            return "", ToolCallError(type="unknown", message=failure.message)
        case TimeoutError():
            return "", ToolCallError(type="timeout", message="Command timed out before completing.")
        case UnicodeDecodeError():
            said = f"Error decoding bytes to {failure.encoding}: {failure.reason}"
            return "", ToolCallError(type="unicode_decode", message=said)
        case PermissionError():
            return "", ToolCallError(type="permission", message=_os_error(failure))
        case FileNotFoundError():
            missing = f"File '{failure.filename}' was not found." if failure.filename else str(failure)
            return "", ToolCallError(type="file_not_found", message=missing)
        case IsADirectoryError():
            return "", ToolCallError(type="is_a_directory", message=_os_error(failure))
        case LimitExceededError() | BaseExceptionGroup() if (own := limit_in(failure)) is not None and own.of_part:
            return "", ToolCallError(type="limit", message=f"The tool exceeded its {own.type} limit of {own.limit:g}.")
        case OutputLimitExceededError():
            limit = f"The tool exceeded its output limit of {failure.limit_str}."
            return failure.truncated_output or "", ToolCallError(type="limit", message=limit)
    return None


def _os_error(failure: OSError) -> str:
    if failure.filename:
        return f"{failure.strerror}: '{failure.filename}'"
    return str(failure)

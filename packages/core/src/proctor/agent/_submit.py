"""The submit tool of ``react``, and what becomes of its calls."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.agent._agent import AgentState
from proctor.agent._types import AgentSubmit
from proctor.schema import ChatMessage, ChatMessageAssistant, ChatMessageTool, ContentText
from proctor.tool import Tool, ToolDef, tool

__all__ = ["Submission"]


@tool(name="submit")
def _submit() -> Tool:
    async def execute(answer: str) -> str:
        """Submit your answer, to be scored.

        Args:
            answer: Your answer.
        """
        return answer

    return execute


class Submission:
    """A submit tool and how its answers are recorded.

    Args:
        settings: see ``AgentSubmit``.
    """

    def __init__(self, settings: AgentSubmit) -> None:
        base = settings.tool or _submit()
        given = base.tool if isinstance(base, ToolDef) else base
        known = base if isinstance(base, ToolDef) else ToolDef(given)
        self._settings = settings
        self.tool = ToolDef(
            given, settings.name or known.name, settings.description or known.description, known.parameters
        )

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.tool.name

    def find(self, messages: Sequence[ChatMessage]) -> str | None:
        """The answer that was submitted in ``messages``, if one was and the call didn't fail."""
        for message in messages:
            if isinstance(message, ChatMessageTool) and message.function == self.name and message.error is None:
                return message.text
        return None

    def record(self, state: AgentState, answer: str) -> None:
        """Put ``answer`` into the output and, unless calls stay in the conversation, into the message that gave it."""
        said, delimiter = state.output.completion, self._settings.answer_delimiter
        joined = f"{said}{delimiter}{answer}" if said else answer
        state.output.completion = answer if self._settings.answer_only else joined
        if self._settings.keep_in_messages:
            return
        message = state.output.message
        if isinstance(message.content, str):
            message.content = f"{message.content}{delimiter}{answer}" if message.content else answer
        else:
            message.content = [*message.content, ContentText(text=f"{delimiter}{answer}")]

    def clean(self, state: AgentState) -> None:
        """Take the calls of the tool, and what it answered, out of the conversation (unless they are to stay)."""
        if self._settings.keep_in_messages:
            return
        kept = []
        for message in state.messages:
            if isinstance(message, ChatMessageTool) and message.function == self.name:
                continue
            if isinstance(message, ChatMessageAssistant) and message.tool_calls:
                others = [call for call in message.tool_calls if call.function != self.name]
                if len(others) < len(message.tool_calls):
                    message.tool_calls = others or None
            kept.append(message)
        state.messages = kept

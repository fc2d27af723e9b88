"""Handoffs: another agent takes the conversation over, and gives it back when it is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.agent._agent import Agent, AgentState, agent_name
from proctor.agent._as_tool import agent_signature
from proctor.agent._filter import MessageFilter, content_only
from proctor.agent._run import run_in_span
from proctor.limits import Limit, apply_limits
from proctor.schema import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentText,
)
from proctor.tool import Conversation, ConversationTool, Tool, ToolDef, set_tool_signature

__all__ = ["handoff"]


def handoff(
    agent: Agent,
    description: str | None = None,
    input_filter: MessageFilter | None = None,
    output_filter: MessageFilter | None = content_only,
    tool_name: str | None = None,
    limits: Sequence[Limit] = (),
    **agent_kwargs: Any,
) -> Tool:
    """A tool with which a model hands the conversation over to ``agent``.

    Args:
        agent: the agent.
        description: what the model is told; by default the agent's description.
        input_filter: what the agent sees of the conversation; by default all but its system messages.
        output_filter: what is kept of what the agent adds; by default its content, without tool calls and reasoning.
        tool_name: the tool's name; by default ``transfer_to_<agent>``.
        limits: what the agent may use each time, such as ``[token_limit(50_000)]``; when one runs out, the caller has
            the conversation back as it is, and is told so.
        agent_kwargs: further arguments of the agent; the model sets those that are not given here.
    """
    signature = agent_signature(agent, description, agent_kwargs)
    tool = _Handoff(agent, input_filter, output_filter, limits, agent_kwargs)
    set_tool_signature(tool, signature)
    name = tool_name or f"transfer_to_{agent_name(agent)}"
    return ToolDef(tool, name, signature.description, signature.parameters, False).as_tool()


class _Handoff(ConversationTool):
    def __init__(
        self,
        agent: Agent,
        input_filter: MessageFilter | None,
        output_filter: MessageFilter | None,
        limits: Sequence[Limit],
        arguments: dict[str, Any],
    ) -> None:
        self.agent = agent_name(agent)
        self._agent = agent
        self._input_filter = input_filter
        self._output_filter = output_filter
        self._limits = limits
        self._arguments = arguments

    def accepted(self) -> str:
        return f"Successfully transferred to {self.agent}."

    async def converse(self, messages: list[ChatMessage], arguments: dict[str, Any]) -> Conversation:
        given: list[ChatMessage] = [message for message in messages if not isinstance(message, ChatMessageSystem)]
        if self._input_filter is not None:
            given = await self._input_filter(given)
            if not (given and isinstance(given[-1], (ChatMessageTool, ChatMessageUser))):
                # The filter took away the answer that the agent has to go on from.
                given = [*given, ChatMessageUser(content=self.accepted())]
        state = AgentState(messages=given)
        known = {message.id for message in state.messages}
        with apply_limits([limit.copy() for limit in self._limits], catch_errors=True) as scope:
            state = await run_in_span(self._agent, state, None, {**self._arguments, **arguments})
        added: list[ChatMessage] = [
            message
            for message in state.messages
            if message.id not in known and not isinstance(message, ChatMessageSystem)
        ]
        if self._output_filter is not None:
            added = await self._output_filter(added)
        added = [self._signed(message) for message in added]
        if (ended := scope.limit_error) is not None:
            said = f"The {self.agent} agent was ended by its {ended.type} limit of {ended.limit:g}."
            added.append(ChatMessageUser(content=said))
        elif not (added and isinstance(added[-1], ChatMessageUser)):
            added.append(ChatMessageUser(content=f"The {self.agent} agent has completed its work."))
        return Conversation(added, None if state.output.empty else state.output)

    def _signed(self, message: ChatMessage) -> ChatMessage:
        """``message`` with the agent's name before it, so that the caller doesn't take it for its own."""
        if not isinstance(message, ChatMessageAssistant):
            return message
        prefix = f"[{self.agent}] "
        content: str | list[Content] = message.content
        if isinstance(content, str):
            return message.model_copy(update={"content": prefix + content})
        parts = list(content)
        for index, part in enumerate(parts):
            if isinstance(part, ContentText):
                parts[index] = part.model_copy(update={"text": prefix + part.text})
                break
        else:
            parts.insert(0, ContentText(text=prefix.rstrip()))
        return message.model_copy(update={"content": parts})

"""Tools: what a model may call, and how its calls are run."""

from proctor.schema import (
    Content,
    ContentAudio,
    ContentData,
    ContentDocument,
    ContentImage,
    ContentReasoning,
    ContentText,
    ContentToolUse,
    ContentVideo,
    ToolCall,
    ToolCallContent,
    ToolCallError,
    ToolChoice,
    ToolFunction,
    ToolInfo,
    ToolParam,
    ToolParams,
)
from proctor.tool._conversation import Conversation, ConversationTool
from proctor.tool._def import ToolDef, tool_defs, tool_info, tool_with
from proctor.tool._execute import ExecuteToolsResult, execute_tools
from proctor.tool._json_schema import json_schema
from proctor.tool._signature import ToolSignature, set_tool_signature, tool_signature
from proctor.tool._standard import bash, python, think
from proctor.tool._tool import Tool, ToolCallView, ToolCallViewer, ToolError, ToolResult, ToolSource, tool
from proctor.tool._truncate import DEFAULT_MAX_OUTPUT

__all__ = [
    "DEFAULT_MAX_OUTPUT",
    "Content",
    "ContentAudio",
    "ContentData",
    "ContentDocument",
    "ContentImage",
    "ContentReasoning",
    "ContentText",
    "ContentToolUse",
    "ContentVideo",
    "Conversation",
    "ConversationTool",
    "ExecuteToolsResult",
    "Tool",
    "ToolCall",
    "ToolCallContent",
    "ToolCallError",
    "ToolCallView",
    "ToolCallViewer",
    "ToolChoice",
    "ToolDef",
    "ToolError",
    "ToolFunction",
    "ToolInfo",
    "ToolParam",
    "ToolParams",
    "ToolResult",
    "ToolSignature",
    "ToolSource",
    "bash",
    "execute_tools",
    "json_schema",
    "python",
    "set_tool_signature",
    "think",
    "tool",
    "tool_defs",
    "tool_info",
    "tool_signature",
    "tool_with",
]

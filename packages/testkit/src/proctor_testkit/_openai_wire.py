"""Bodies of OpenAI's protocol, as its documentation gives them: chat completions and responses."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["answer", "chat_body", "error_body", "response_body"]

_numbers = itertools.count(1)


def answer(
    text: str | None = None,
    *,
    calls: Sequence[tuple[str, Any]] = (),
    reasoning: str | None = None,
    finish: str | None = None,
    refusal: str | None = None,
    logprobs: Sequence[tuple[str, float]] = (),
    usage: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """What a model says, in no protocol yet.

    Args:
        text: the text of the reply.
        calls: name and arguments (an object, or the raw text) of each tool call.
        reasoning: what the model thought.
        finish: the finish reason; by default ``tool_calls`` with calls, else ``stop``.
        refusal: the words of a refusal.
        logprobs: tokens and their log probabilities.
        usage: of ``prompt``, ``completion``, ``cached``, ``written`` (to the cache) and ``reasoning`` token counts;
            ``input`` and ``output`` are other names of the first two, which every fake of the kit understands.
    """
    counts = {{"input": "prompt", "output": "completion"}.get(name, name): n for name, n in (usage or {}).items()}
    return {
        "text": text,
        "calls": [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in calls],
        "reasoning": reasoning,
        "finish": finish or ("tool_calls" if calls else "stop"),
        "refusal": refusal,
        "logprobs": list(logprobs),
        "usage": {"prompt": 20, "completion": 10, "cached": 0, "written": 0, "reasoning": 0, **counts},
    }


def chat_body(said: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """A chat completion that says ``said`` to ``request``."""
    message: dict[str, Any] = {"role": "assistant", "content": said["text"], "refusal": said["refusal"]}
    if said["reasoning"] is not None:
        message["reasoning_content"] = said["reasoning"]
    if said["calls"]:
        message["tool_calls"] = [
            {"id": f"call_{next(_numbers)}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for name, arguments in said["calls"]
        ]
    finish = said["finish"]
    if request.get("max_tokens") == 1 or request.get("max_completion_tokens") == 1:
        finish = "length"
    tokens = [
        {"token": token, "logprob": value, "bytes": list(token.encode()), "top_logprobs": []}
        for token, value in said["logprobs"]
    ]
    usage = said["usage"]
    return {
        "id": f"chatcmpl-{next(_numbers)}",
        "object": "chat.completion",
        "created": 1764417600,
        "model": request.get("model", "fake"),
        "choices": [
            {
                "index": index,
                "message": message,
                "finish_reason": finish,
                "logprobs": {"content": tokens, "refusal": None} if tokens else None,
            }
            for index in range(request.get("n") or 1)
        ],
        "usage": {
            "prompt_tokens": usage["prompt"],
            "completion_tokens": usage["completion"],
            "total_tokens": usage["prompt"] + usage["completion"],
            "prompt_tokens_details": {
                "cached_tokens": usage["cached"],
                "cache_write_tokens": usage["written"],
                "audio_tokens": 0,
            },
            "completion_tokens_details": {"reasoning_tokens": usage["reasoning"], "audio_tokens": 0},
        },
    }


def response_body(said: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """A response of the Responses API that says ``said`` to ``request``."""
    cut = said["finish"] == "length" or request.get("max_output_tokens") == 1
    usage = said["usage"]
    return {
        "id": f"resp_{next(_numbers)}",
        "object": "response",
        "created_at": 1764417600,
        "status": "incomplete" if cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "instructions": None,
        "metadata": {},
        "model": request.get("model", "fake"),
        "output": _items(said),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": request.get("tool_choice", "auto"),
        "tools": request.get("tools", []),
        "top_p": 1.0,
        "usage": {
            "input_tokens": usage["prompt"],
            "input_tokens_details": {"cached_tokens": usage["cached"], "cache_write_tokens": usage["written"]},
            "output_tokens": usage["completion"],
            "output_tokens_details": {"reasoning_tokens": usage["reasoning"]},
            "total_tokens": usage["prompt"] + usage["completion"],
        },
    }


def _items(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if said["reasoning"] is not None:
        items.append(
            {
                "id": f"rs_{next(_numbers)}",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": said["reasoning"]}],
                "encrypted_content": f"opaque:{len(said['reasoning'])}:gAAAAABo",
            }
        )
    parts: list[dict[str, Any]] = []
    if said["text"] is not None:
        tokens = [
            {"token": token, "logprob": value, "bytes": list(token.encode()), "top_logprobs": []}
            for token, value in said["logprobs"]
        ]
        parts.append({"type": "output_text", "text": said["text"], "annotations": [], "logprobs": tokens})
    if said["refusal"] is not None:
        parts.append({"type": "refusal", "refusal": said["refusal"]})
    if parts:
        message = {"type": "message", "role": "assistant", "status": "completed", "content": parts}
        items.append({"id": f"msg_{next(_numbers)}", **message})
    for name, arguments in said["calls"]:
        number = next(_numbers)
        call = {"type": "function_call", "call_id": f"call_{number}", "name": name, "arguments": arguments}
        items.append({"id": f"fc_{number}", "status": "completed", **call})
    return items


def error_body(message: str, *, kind: str = "", code: str | None = None) -> dict[str, Any]:
    """An error as OpenAI writes it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}

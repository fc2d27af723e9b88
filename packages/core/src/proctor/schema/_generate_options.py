"""The settings of a generation as options, under the names of ``GenerateConfig``'s fields."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from proctor.schema._config import ResponseSchema
from proctor.schema._option import Option

__all__ = ["UNUSED_FIELDS", "GenerateOptions"]

UNUSED_FIELDS = frozenset(
    {
        "batch",
        "best_of",
        "cache",
        "fail_on_refusal",
        "fallback_models",
        "stream_idle_timeout",
    }
)
"""Fields of ``GenerateConfig`` that logs have and nothing here acts on, so that they are no options."""


class GenerateOptions(TypedDict, total=False):
    """The fields of ``GenerateConfig`` that the engine or a provider acts on, by the same name."""

    max_connections: Annotated[
        int | None,
        Option(
            "--max-connections",
            "Requests in flight at once, for each provider, credential and base URL. Turns adaptive connections off.",
            "Parallelism",
            "int",
            minimum=1,
            default="adaptive, or the provider's own",
        ),
    ]
    adaptive_connections: Annotated[
        bool | int | dict[str, int] | None,
        Option(
            "--adaptive-connections",
            "Let the limit of connections follow the provider's answers, between a least and a most; false: the "
            "provider's static number.",
            "Parallelism",
            "adaptive",
            metavar="[=MAX|MIN-MAX|MIN-START-MAX]",
            bare=True,
            default="1-20-100 for models behind a network",
        ),
    ]
    max_retries: Annotated[
        int | None,
        Option(
            "--max-retries",
            "How often a failed model request is sent again.",
            "Generation",
            "int",
            minimum=0,
            default="20",
        ),
    ]
    timeout: Annotated[
        float | None,
        Option(
            "--timeout",
            "Seconds for one generation with all its retries, waits for a connection not counted.",
            "Generation",
            "number",
            metavar="SECONDS",
            above=0,
            default="none",
        ),
    ]
    attempt_timeout: Annotated[
        float | None,
        Option(
            "--attempt-timeout",
            "Seconds for one request, counted from when it is sent.",
            "Generation",
            "number",
            metavar="SECONDS",
            above=0,
            default="600",
        ),
    ]
    system_message: Annotated[
        str | None,
        Option("--system-message", "A system message put before every conversation.", "Generation"),
    ]
    max_tokens: Annotated[
        int | None,
        Option(
            "--max-tokens",
            "The most tokens of one reply.",
            "Generation",
            "int",
            minimum=1,
            default="the model's own",
        ),
    ]
    temperature: Annotated[
        float | None,
        Option("--temperature", "Sampling temperature; 0 is the most repeatable.", "Generation", "number", minimum=0),
    ]
    top_p: Annotated[
        float | None,
        Option(
            "--top-p",
            "Sample from the likeliest tokens that together have this probability.",
            "Generation",
            "number",
            minimum=0,
            maximum=1,
        ),
    ]
    top_k: Annotated[
        int | None,
        Option("--top-k", "Sample from this many of the likeliest tokens.", "Generation", "int"),
    ]
    seed: Annotated[
        int | None,
        Option("--seed", "Seed of the model's sampling.", "Generation", "int"),
    ]
    stop_seqs: Annotated[
        list[str] | None,
        Option(
            "--stop-seqs",
            "Texts that end a reply, separated by commas or repeated.",
            "Generation",
            "texts",
            metavar="A,B",
        ),
    ]
    num_choices: Annotated[
        int | None,
        Option("--num-choices", "Replies to ask for with each request.", "Generation", "int", minimum=1),
    ]
    frequency_penalty: Annotated[
        float | None,
        Option(
            "--frequency-penalty",
            "Penalty on tokens by how often they occurred.",
            "Generation",
            "number",
            minimum=-2,
            maximum=2,
        ),
    ]
    presence_penalty: Annotated[
        float | None,
        Option(
            "--presence-penalty",
            "Penalty on tokens that occurred at all.",
            "Generation",
            "number",
            minimum=-2,
            maximum=2,
        ),
    ]
    logit_bias: Annotated[
        dict[int, float] | None,
        Option(
            "--logit-bias",
            "Bias on token ids, from -100 to 100, such as 42=10,43=-10.",
            "Generation",
            "biases",
            metavar="ID=BIAS,...",
        ),
    ]
    logprobs: Annotated[
        bool | None,
        Option("--logprobs/--no-logprobs", "Ask for the log probability of each token.", "Generation", "flag"),
    ]
    top_logprobs: Annotated[
        int | None,
        Option(
            "--top-logprobs",
            "How many likeliest tokens to report at each place.",
            "Generation",
            "int",
            minimum=0,
        ),
    ]
    prompt_logprobs: Annotated[
        int | None,
        Option(
            "--prompt-logprobs",
            "How many log probabilities to report for each token of the prompt.",
            "Generation",
            "int",
            minimum=0,
        ),
    ]
    parallel_tool_calls: Annotated[
        bool | None,
        Option(
            "--parallel-tool-calls/--no-parallel-tool-calls",
            "Let the model call several tools in one reply.",
            "Generation",
            "flag",
        ),
    ]
    internal_tools: Annotated[
        bool | None,
        Option(
            "--internal-tools/--no-internal-tools",
            "Use the provider's own form of a tool where it has one.",
            "Generation",
            "flag",
        ),
    ]
    max_tool_output: Annotated[
        int | None,
        Option(
            "--max-tool-output",
            "The most bytes of a tool's output that the model sees.",
            "Generation",
            "int",
            minimum=0,
            default="16384",
        ),
    ]
    cache_prompt: Annotated[
        bool | str | None,
        Option(
            "--cache-prompt",
            "Cache the prompt's beginning at the provider: true, false or auto.",
            "Generation",
            "bool_or_text",
            metavar="auto|true|false",
            choices=("auto",),
        ),
    ]
    verbosity: Annotated[
        str | None,
        Option("--verbosity", "How wordy the reply is.", "Generation", "choice", choices=("low", "medium", "high")),
    ]
    effort: Annotated[
        str | None,
        Option(
            "--effort",
            "How many tokens the model spends on a reply.",
            "Generation",
            "choice",
            choices=("low", "medium", "high", "xhigh", "max"),
        ),
    ]
    reasoning_effort: Annotated[
        str | None,
        Option(
            "--reasoning-effort",
            "How much the model reasons.",
            "Generation",
            "choice",
            choices=("none", "minimal", "low", "medium", "high", "xhigh", "max"),
        ),
    ]
    reasoning_mode: Annotated[
        str | None,
        Option(
            "--reasoning-mode",
            "Standard, or more work on hard tasks.",
            "Generation",
            "choice",
            choices=("standard", "pro"),
        ),
    ]
    reasoning_tokens: Annotated[
        int | None,
        Option("--reasoning-tokens", "The most tokens of reasoning.", "Generation", "int", minimum=0),
    ]
    reasoning_summary: Annotated[
        str | None,
        Option(
            "--reasoning-summary",
            "Ask for a summary of the reasoning.",
            "Generation",
            "choice",
            choices=("none", "concise", "detailed", "auto"),
        ),
    ]
    reasoning_history: Annotated[
        str | None,
        Option(
            "--reasoning-history",
            "Which reasoning is sent back in later turns.",
            "Generation",
            "choice",
            choices=("none", "all", "last", "auto"),
        ),
    ]
    response_schema: Annotated[
        ResponseSchema | dict[str, Any] | None,
        Option(
            "--response-schema",
            "JSON schema that replies must fit: a file, or the JSON or YAML itself.",
            "Generation",
            "schema",
            metavar="FILE|JSON",
        ),
    ]
    extra_headers: Annotated[
        dict[str, str] | None,
        Option(
            "--extra-headers",
            "Headers added to each request, as a JSON or YAML mapping.",
            "Generation",
            "mapping",
            metavar="MAPPING",
        ),
    ]
    extra_body: Annotated[
        dict[str, Any] | None,
        Option(
            "--extra-body",
            "Fields added to the body of each request, as a JSON or YAML mapping.",
            "Generation",
            "mapping",
            metavar="MAPPING",
        ),
    ]
    modalities: Annotated[
        list[str] | None,
        Option("--modalities", "Kinds of output beside text, such as image.", "Generation", "texts", metavar="A,B"),
    ]

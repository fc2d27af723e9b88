"""The options of an evaluation: the signature of ``eval()``, and the one table behind everything that sets them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Mapping

from proctor.schema._generate_options import GenerateOptions
from proctor.schema._option import Option
from proctor.schema._sample import SandboxSpec

__all__ = ["GENERATE_FIELDS", "MODEL_OPTION", "EvalOptions", "env_name", "option_table"]

GENERATE_FIELDS: frozenset[str] = frozenset(GenerateOptions.__annotations__)
"""The keys of ``EvalOptions`` that are fields of ``GenerateConfig``."""

MODEL_OPTION = Option(
    "--model",
    "Model to evaluate, as provider/model. Several, separated by commas, each get a log of their own.",
    "Model",
    "texts",
    env="PROCTOR_EVAL_MODEL",
    metavar="MODEL[,MODEL]",
)
"""``model`` is an argument of ``eval()`` of its own, and an option everywhere else."""


class EvalOptions(GenerateOptions, total=False):
    """What ``eval(tasks, model, **options)`` takes. A key that is missing, or ``None``, is not said here."""

    task_args: Annotated[
        dict[str, Any] | None,
        Option("-T", "Argument of the task function; repeat it.", "Task", "pairs", metavar="NAME=VALUE"),
    ]
    task_config: Annotated[
        str | None,
        Option("--task-config", "JSON or YAML file of task arguments; -T wins over it.", "Task", metavar="FILE"),
    ]
    solver: Annotated[
        Any,
        Option("--solver", "Solver in place of the task's own: NAME, FILE or FILE@NAME.", "Task", metavar="SOLVER"),
    ]
    solver_args: Annotated[
        dict[str, Any] | None,
        Option("-S", "Argument of the solver; repeat it.", "Task", "pairs", metavar="NAME=VALUE"),
    ]
    sandbox: Annotated[
        str | tuple[str, str] | SandboxSpec | None,
        Option(
            "--sandbox",
            "Where tools and model code run: a provider, with its configuration after a colon (docker:compose.yaml).",
            "Task",
            metavar="NAME[:CONFIG]",
        ),
    ]
    sandbox_cleanup: Annotated[
        bool | None,
        Option(
            "--sandbox-cleanup/--no-sandbox-cleanup",
            "Take sandboxes down when their sample is done.",
            "Task",
            "flag",
            default="yes",
        ),
    ]
    limit: Annotated[
        int | tuple[int, int] | None,
        Option(
            "--limit",
            "Only the first N samples, or those from A to B, counted from 1.",
            "Task",
            "range",
            metavar="N|A-B",
            minimum=1,
        ),
    ]
    sample_id: Annotated[
        str | int | Sequence[str | int] | None,
        Option(
            "--sample-id",
            "Only the samples with these ids, in which * and ? stand for any text or character; --limit counts them.",
            "Task",
            "ids",
            metavar="ID[,ID]",
        ),
    ]
    sample_shuffle: Annotated[
        bool | int | None,
        Option(
            "--sample-shuffle",
            "Shuffle the samples, with a seed for an order that repeats.",
            "Task",
            "bool_or_int",
            metavar="[=SEED]",
            bare=True,
        ),
    ]
    epochs: Annotated[
        int | None,
        Option("--epochs", "How often each sample is run.", "Task", "int", minimum=1, default="1"),
    ]
    epochs_reducer: Annotated[
        str | Sequence[str] | None,
        Option(
            "--epochs-reducer",
            "How the scores of a sample's epochs become one: mean, median, mode, max, at_least_N, pass_at_N.",
            "Task",
            "texts",
            metavar="NAME[,NAME]",
            default="mean",
        ),
    ]
    score: Annotated[
        bool | None,
        Option("--score/--no-score", "Score the samples.", "Task", "flag", default="yes"),
    ]
    tags: Annotated[
        Sequence[str] | None,
        Option("--tags", "Tags of this run, for finding its logs.", "Task", "texts", metavar="TAG[,TAG]"),
    ]
    metadata: Annotated[
        dict[str, Any] | None,
        Option("--metadata", "A fact to keep in the log; repeat it.", "Task", "pairs", metavar="NAME=VALUE"),
    ]
    dry_run: Annotated[
        bool | None,
        Option("--dry-run", "Show what would run, and stop before the first request.", "Task", "flag"),
    ]
    model_base_url: Annotated[
        str | None,
        Option("--model-base-url", "Base URL of the model's API.", "Model", metavar="URL"),
    ]
    model_args: Annotated[
        dict[str, Any] | None,
        Option("-M", "Argument of the model provider; repeat it.", "Model", "pairs", metavar="NAME=VALUE"),
    ]
    model_config: Annotated[
        str | None,
        Option("--model-config", "JSON or YAML file of provider arguments; -M wins over it.", "Model", metavar="FILE"),
    ]
    model_cost_config: Annotated[
        str | dict[str, Any] | None,
        Option(
            "--model-cost-config",
            "JSON or YAML file of prices in dollars per million tokens: {openai/gpt-5: {input: 1.25, output: 10}}.",
            "Model",
            metavar="FILE",
        ),
    ]
    model_roles: Annotated[
        dict[str, Any] | None,
        Option(
            "--model-role",
            "Model for a role, such as grader=openai/gpt-5 or grader={model: openai/gpt-5, temperature: 0}; repeat it.",
            "Model",
            "roles",
            env="PROCTOR_EVAL_MODEL_ROLE",
            metavar="ROLE=MODEL",
        ),
    ]
    generate_config: Annotated[
        str | None,
        Option(
            "--generate-config",
            "JSON or YAML file of generation settings; single settings win over it.",
            "Generation",
            metavar="FILE",
        ),
    ]
    max_rpm: Annotated[
        int | None,
        Option(
            "--max-rpm",
            "Requests a minute, for each provider, credential and base URL.",
            "Parallelism",
            "int",
            minimum=1,
            default="what the provider's headers allow",
        ),
    ]
    max_tpm: Annotated[
        int | None,
        Option(
            "--max-tpm",
            "Tokens a minute, such as 500k, for each provider, credential and base URL.",
            "Parallelism",
            "tokens",
            minimum=1,
            default="what the provider's headers allow",
        ),
    ]
    share: Annotated[
        str | None,
        Option(
            "--share",
            "Share connections, --max-rpm and --max-tpm with the other runs on this machine that give the same name.",
            "Parallelism",
            env="PROCTOR_SHARE",
            metavar="NAME",
            default="every run for itself",
        ),
    ]
    max_samples: Annotated[
        int | None,
        Option(
            "--max-samples",
            "Samples of a task that run at once.",
            "Parallelism",
            "int",
            minimum=1,
            default="as many as there are connections",
        ),
    ]
    max_tasks: Annotated[
        int | None,
        Option(
            "--max-tasks",
            "Tasks (each with one model) that run at once.",
            "Parallelism",
            "int",
            minimum=1,
            default="the number of models",
        ),
    ]
    max_subprocesses: Annotated[
        int | None,
        Option(
            "--max-subprocesses",
            "Subprocesses that run at once.",
            "Parallelism",
            "int",
            minimum=1,
            default="the CPUs this process may use",
        ),
    ]
    max_sandboxes: Annotated[
        int | None,
        Option(
            "--max-sandboxes",
            "Sandboxes of one provider that are up at once.",
            "Parallelism",
            "int",
            minimum=1,
            default="the provider's own",
        ),
    ]
    async_backend: Annotated[
        str | None,
        Option(
            "--async-backend",
            "What runs the event loop.",
            "Parallelism",
            "choice",
            env="PROCTOR_ASYNC_BACKEND",
            choices=("asyncio", "trio"),
            default="asyncio",
        ),
    ]
    message_limit: Annotated[
        int | None,
        Option("--message-limit", "Messages of one sample.", "Limits", "int", minimum=1),
    ]
    token_limit: Annotated[
        int | None,
        Option("--token-limit", "Tokens of one sample, such as 500000 or 500k.", "Limits", "tokens", minimum=1),
    ]
    turn_limit: Annotated[
        int | None,
        Option("--turn-limit", "Model calls of one sample.", "Limits", "int", minimum=1),
    ]
    time_limit: Annotated[
        float | None,
        Option("--time-limit", "Seconds of one sample, by the clock.", "Limits", "number", metavar="SECONDS", above=0),
    ]
    working_limit: Annotated[
        float | None,
        Option(
            "--working-limit",
            "Seconds of one sample, without the time it waited for connections and retries.",
            "Limits",
            "number",
            metavar="SECONDS",
            above=0,
        ),
    ]
    cost_limit: Annotated[
        float | None,
        Option(
            "--cost-limit",
            "Dollars of one sample, by the prices of --model-cost-config.",
            "Limits",
            "number",
            metavar="USD",
            above=0,
        ),
    ]
    max_cost: Annotated[
        float | None,
        Option(
            "--max-cost",
            "Dollars of the whole run: when they are spent no further sample starts, and those that run end.",
            "Limits",
            "number",
            metavar="USD",
            above=0,
        ),
    ]
    max_tokens_total: Annotated[
        int | None,
        Option("--max-tokens-total", "Tokens of the whole run, such as 5m; likewise.", "Limits", "tokens", minimum=1),
    ]
    estimate: Annotated[
        int | None,
        Option(
            "--estimate",
            "Run a few samples (10) from all over each dataset; say what tokens, cost and time the whole would take.",
            "Limits",
            "int",
            metavar="[=N]",
            minimum=2,
            bare=10,
        ),
    ]
    stop_timeout: Annotated[
        float | None,
        Option(
            "--stop-timeout",
            "Seconds that the run has to end after SIGTERM; then the process ends with its logs as far as they came.",
            "Limits",
            "number",
            metavar="SECONDS",
            above=0,
            default="25",
        ),
    ]
    fail_on_error: Annotated[
        bool | float | None,
        Option(
            "--fail-on-error/--no-fail-on-error",
            "Give a task up at its first sample error (the default), or once more than a share (0.1: a tenth) or a "
            "count (5) of its samples failed; --no-fail-on-error: never.",
            "Errors",
            "threshold",
            metavar="[=SHARE|COUNT]",
            minimum=0,
            bare=True,
        ),
    ]
    continue_on_fail: Annotated[
        bool | None,
        Option(
            "--continue-on-fail/--no-continue-on-fail",
            "Over the threshold of --fail-on-error, run the other samples first and fail then.",
            "Errors",
            "flag",
        ),
    ]
    retry_on_error: Annotated[
        int | None,
        Option(
            "--retry-on-error",
            "Run a sample that failed again, once or as often as given.",
            "Errors",
            "int",
            metavar="[=N]",
            minimum=0,
            bare=1,
            default="0",
        ),
    ]
    log_dir: Annotated[
        str | None,
        Option("--log-dir", "Folder of the logs.", "Log", env="PROCTOR_LOG_DIR", metavar="DIR", default="./logs"),
    ]
    log_format: Annotated[
        str | None,
        Option(
            "--log-format",
            "Format of the logs.",
            "Log",
            "choice",
            env="PROCTOR_LOG_FORMAT",
            choices=("eval", "json"),
            default="eval",
        ),
    ]
    log_samples: Annotated[
        bool | None,
        Option("--log-samples/--no-log-samples", "Keep the samples in the log.", "Log", "flag", default="yes"),
    ]
    log_images: Annotated[
        bool | None,
        Option(
            "--log-images/--no-log-images",
            "Keep images and other media in the log.",
            "Log",
            "flag",
            default="yes",
        ),
    ]
    log_model_api: Annotated[
        bool | None,
        Option(
            "--log-model-api/--no-log-model-api",
            "Keep the raw requests and replies of model APIs in the log; those of errors are always kept.",
            "Log",
            "flag",
            default="no",
        ),
    ]
    log_buffer: Annotated[
        int | None,
        Option("--log-buffer", "Samples to gather before the log is written.", "Log", "int", minimum=1),
    ]
    display: Annotated[
        str | None,
        Option(
            "--display",
            "The screen: none, plain, rich, or a plugin's, with its settings after a colon.",
            "Display",
            env="PROCTOR_DISPLAY",
            metavar="NAME[:K=V]",
            default="rich on a terminal, else plain",
        ),
    ]
    score_display: Annotated[
        bool | None,
        Option("--score-display/--no-score-display", "Show running scores.", "Display", "flag", default="yes"),
    ]
    plugins: Annotated[
        Sequence[str] | None,
        Option(
            "--plugin",
            "A plugin without packaging: a file or a module; repeat it.",
            "Plugins",
            "texts",
            env="PROCTOR_PLUGINS",
            metavar="FILE|MODULE",
        ),
    ]
    disable_plugins: Annotated[
        Sequence[str] | None,
        Option(
            "--disable-plugin",
            "Leave out the plugins of a distribution, or one of them; repeat it.",
            "Plugins",
            "texts",
            env="PROCTOR_DISABLE_PLUGINS",
            metavar="DIST[:NAME]",
        ),
    ]
    observers: Annotated[
        Sequence[str] | None,
        Option(
            "--observer",
            "A tracker or notifier that is told about the run, with its settings after a colon; repeat it.",
            "Plugins",
            "specs",
            env="PROCTOR_OBSERVERS",
            metavar="NAME[:K=V,...]",
        ),
    ]


@cache
def option_table() -> Mapping[str, Option]:
    """Each key of ``EvalOptions`` with its declaration, ``model`` first."""
    table = {"model": MODEL_OPTION}
    for key, hint in get_type_hints(EvalOptions, include_extras=True).items():
        table[key] = next(note for note in hint.__metadata__ if isinstance(note, Option))
    return MappingProxyType(table)


def env_name(key: str) -> str:
    """The environment variable that sets the option ``key``."""
    return option_table()[key].variable(key)

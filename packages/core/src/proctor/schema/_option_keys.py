"""Which options the commands take that go on with a log, beside those that a new evaluation takes."""

from __future__ import annotations

from functools import cache

from proctor.schema._options import option_table

__all__ = ["retry_keys", "score_keys"]

_RETRY_GROUPS = ("Parallelism", "Errors", "Log", "Display", "Plugins")
_RETRY_OTHERS = (
    "model_args",
    "model_config",
    "model_base_url",
    "model_cost_config",
    "max_cost",
    "max_tokens_total",
    "stop_timeout",
    "sandbox_cleanup",
    "dry_run",
    "max_retries",
    "timeout",
    "attempt_timeout",
    "stream_idle_timeout",
    "extra_headers",
)
_SCORE_KEYS = frozenset({
    "model_roles", "model_args", "model_config", "model_base_url", "epochs_reducer", "max_samples", "max_connections",
    "adaptive_connections", "max_rpm", "max_tpm", "share", "max_retries", "timeout", "attempt_timeout",
    "max_subprocesses", "async_backend", "log_model_api", "log_images", "plugins", "disable_plugins",
    "fail_on_error", "continue_on_fail", "retry_on_error",
})  # fmt: skip


@cache
def retry_keys() -> frozenset[str]:
    """The options that a resume may be given: how it is run, not what is asked; and what no log holds, keys of APIs."""
    table = option_table()
    return frozenset(key for key in table if table[key].group in _RETRY_GROUPS or key in _RETRY_OTHERS)


def score_keys() -> frozenset[str]:
    """The options that bear on scoring alone, of a log whose samples are not run."""
    return _SCORE_KEYS

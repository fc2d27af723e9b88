"""What code may use: a sample, a part of it, a whole run. Messages, tokens, turns, time, working time, cost."""

from proctor.limits._budget import RunBudget, run_budget, use_budget
from proctor.limits._errors import LimitExceededError, limit_in
from proctor.limits._limits import LimitUse, SampleLimits, begin_limits, sample_limits, use_limits
from proctor.limits._scope import Limit
from proctor.limits._scopes import (
    LimitScope,
    Permit,
    apply_limits,
    cost_limit,
    message_limit,
    time_limit,
    token_limit,
    turn_limit,
    working_limit,
)

__all__ = [
    "Limit",
    "LimitExceededError",
    "LimitScope",
    "LimitUse",
    "Permit",
    "RunBudget",
    "SampleLimits",
    "apply_limits",
    "begin_limits",
    "cost_limit",
    "limit_in",
    "message_limit",
    "run_budget",
    "sample_limits",
    "time_limit",
    "token_limit",
    "turn_limit",
    "use_budget",
    "use_limits",
    "working_limit",
]

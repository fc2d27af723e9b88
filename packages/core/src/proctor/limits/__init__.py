"""What one sample may use: messages, tokens, turns, time, working time, cost."""

from proctor.limits._limits import LimitExceededError, SampleLimits, begin_limits, sample_limits, use_limits

__all__ = ["LimitExceededError", "SampleLimits", "begin_limits", "sample_limits", "use_limits"]

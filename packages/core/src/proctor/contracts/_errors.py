from __future__ import annotations


class UsageError(ValueError):
    """Bad input from the person who runs Proctor: one paragraph that says what, where, the value seen and what to do.

    The command line prints the message without a traceback and exits with 2.
    """


class PrerequisiteError(UsageError):
    """Something that a component needs is absent (an SDK, a key, a program); the message says how to add it."""

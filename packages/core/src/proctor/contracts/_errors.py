from __future__ import annotations


class UsageError(ValueError):
    """Bad input from the person who runs Proctor: one paragraph that says what, where, the value seen and what to do.

    The command line prints the message without a traceback and exits with 2.

    Example:
        >>> from proctor.contracts import UsageError
        >>> def check_level(level):
        ...     if level not in ("low", "high"):
        ...         raise UsageError(f"-M level={level}: there are low and high.")
        >>> check_level("middling")
        Traceback (most recent call last):
            ...
        proctor.contracts._errors.UsageError: -M level=middling: there are low and high.
    """


class PrerequisiteError(UsageError):
    """Something that a component needs is absent (an SDK, a key, a program); the message says how to add it.

    Example:
        >>> from proctor.contracts import PrerequisiteError
        >>> error = PrerequisiteError("Acme's models need the package acme-sdk: pip install acme-sdk")
        >>> isinstance(error, UsageError)
        True
    """

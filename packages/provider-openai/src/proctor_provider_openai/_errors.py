"""Failures of a request, and what they mean for the next one."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from proctor.contracts import RateLimits, Retry
from proctor.model import retry_after as standard_retry_after

__all__ = [
    "APIError",
    "ConnectionFailed",
    "MalformedResponse",
    "classify",
    "duration",
    "rate_limits",
    "refusal",
    "retry_after",
]


class APIError(Exception):
    """The service refused a request.

    Attributes:
        status: the HTTP status (or the one that the body names, when an error came with 200).
        code: the service's own code, such as ``rate_limit_exceeded``.
        kind: the service's own type of error.
        retry_after: seconds that the service asked to wait, or None.
        should_retry: what the service itself said about retrying, or None.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str = "",
        kind: str = "",
        retry_after: float | None = None,
        should_retry: bool | None = None,
        request_id: str | None = None,
    ) -> None:
        self.status = status
        self.message = message
        self.code = code
        self.kind = kind
        self.retry_after = retry_after
        self.should_retry = should_retry
        self.request_id = request_id
        where = f" (request {request_id})" if request_id else ""
        label = " ".join(str(part) for part in (status, code or kind) if part)
        super().__init__(f"{label}: {message}{where}")


class ConnectionFailed(ConnectionError):
    """There was no complete HTTP response: no connection, or one that broke."""


class MalformedResponse(Exception):
    """The service said success, and what came is not a reply (cut short by a proxy, most often)."""


_OVERLOADED = re.compile(r"overloaded|at capacity|slow down|too many requests|rate.?limit", re.IGNORECASE)
_NO_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing|credit balance|payment", re.IGNORECASE)
_TRANSIENT = frozenset({408, 409, 425, 498, 499})
# What errors that came with a success are called, and the status that they should have had.
_STATUSES = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "too_many_requests": 429,
    "insufficient_quota": 429,
    "overloaded": 529,
    "overloaded_error": 529,
    "invalid_request_error": 400,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
}


def classify(exc: BaseException) -> Retry | None:
    """What ``exc`` means for a retry; None when it is no error of this provider."""
    if isinstance(exc, APIError):
        return _classify_refusal(exc)
    if isinstance(exc, (ConnectionFailed, MalformedResponse, TimeoutError)):
        return Retry("transient")
    return None


def _classify_refusal(exc: APIError) -> Retry:
    said = f"{exc.code} {exc.kind} {exc.message}"
    if exc.should_retry is False:  # the service's own word, which OpenAI's client obeys before it looks at the status
        return Retry("permanent")
    if exc.status == 402 or (exc.status in (403, 429) and _NO_QUOTA.search(said)):
        return Retry("permanent")
    if exc.status in (429, 529) or (exc.status == 503 and _OVERLOADED.search(said)):
        return Retry("rate_limit", exc.retry_after)
    if exc.should_retry or exc.status >= 500 or exc.status in _TRANSIENT:
        return Retry("transient", exc.retry_after)
    return Retry("permanent")


_EPOCH_SECONDS = 1e9  # since 2001; no quota takes thirty years to come back
_EPOCH_MILLISECONDS = 1e12
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_BODY_HINT = re.compile(
    r"(?:try again|retry|wait)\D{0,20}?"
    r"((?:\d+(?:\.\d+)?\s?(?:ms|milliseconds?|seconds?|secs?|minutes?|mins?|[smhd])\s?)+)",
    re.IGNORECASE,
)


def duration(text: str) -> float | None:
    """Seconds of ``6m0s``, ``1.5s``, ``12ms`` or a bare number of seconds; None for anything else."""
    text = text.strip()
    if _DURATION.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def retry_after(headers: Mapping[str, str], message: str = "", now: float | None = None) -> float | None:
    """Seconds that a refusal asks to wait.

    By ``retry-after-ms``, ``retry-after`` (seconds or HTTP date), its text ("try again in 1.5s"), or the reset of a
    budget that has nothing left (``x-ratelimit-remaining-*: 0`` and ``x-ratelimit-reset-*``).

    Args:
        headers: the response's headers; any mapping that finds lower-case names.
        message: the error message.
        now: the time, in seconds since the epoch, that an HTTP date is compared with.
    """
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        milliseconds = duration(headers.get(name) or "")
        if milliseconds is not None:
            return milliseconds / 1000
    said = duration(headers.get("retry-after") or "")  # "1.5s" too, which no standard knows
    if said is None:
        said = standard_retry_after(headers, now)
    if said is not None:
        return said
    hint = _BODY_HINT.search(message)
    if hint:
        return _spoken(hint.group(1))
    return _refill(headers, now)


def _refill(headers: Mapping[str, str], now: float | None) -> float | None:
    """Seconds until the budget that is used up, requests or tokens, is filled again; None when none is said to be."""
    limits = rate_limits(headers, now)
    if limits is None:
        return None
    budgets = (
        (limits.requests_remaining, limits.requests_reset),
        (limits.tokens_remaining, limits.tokens_reset),
    )
    return max((reset for remaining, reset in budgets if remaining == 0 and reset is not None), default=None)


_SPOKEN = re.compile(r"(\d+(?:\.\d+)?)\s?(ms|milli|h|d|m|s)", re.IGNORECASE)


def _spoken(text: str) -> float:
    units = {**_UNITS, "milli": 0.001}
    return sum(float(number) * units[unit.lower()] for number, unit in _SPOKEN.findall(text))


_QUOTA = tuple(f"x-ratelimit-{what}-{of}" for of in ("requests", "tokens") for what in ("limit", "remaining", "reset"))
"""The headers, in the order of the fields of ``RateLimits``."""


def rate_limits(headers: Mapping[str, str], now: float | None = None) -> RateLimits | None:
    """The quota in ``x-ratelimit-{limit,remaining,reset}-{requests,tokens}`` headers, or None when there is none.

    Resets are durations (``6m0s``, ``12ms``, ``60``); a number so large that it is a time of day, in seconds or
    milliseconds since the epoch, is compared with ``now``.
    """
    texts = [headers.get(name) for name in _QUOTA]
    if not any(texts):  # most servers of one's own; this is asked of every answer
        return None
    found = [_reset(text, now) if "-reset-" in name else _count(text) for name, text in zip(_QUOTA, texts, strict=True)]
    if all(value is None for value in found):
        return None
    return RateLimits(*found)  # type: ignore[arg-type]  # counts are ints, resets floats, in the order of the fields


def _reset(text: str | None, now: float | None) -> float | None:
    seconds = duration(text or "")
    if seconds is None or seconds < _EPOCH_SECONDS:
        return seconds
    moment = seconds / 1000 if seconds >= _EPOCH_MILLISECONDS else seconds
    return max(0.0, moment - (time.time() if now is None else now))


def _count(text: str | None) -> int | None:
    try:
        count = int(float(text)) if text else None
    except (ValueError, OverflowError):
        return None
    return count if count is None or count >= 0 else None


def refusal(status: int, headers: Mapping[str, str], body: Any) -> APIError:
    """The error that a response of ``status`` with ``body`` (JSON, or text) stands for."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        message = str(error.get("message") or error.get("detail") or error)
        code, kind = str(error.get("code") or ""), str(error.get("type") or error.get("status") or "")
        inner = error.get("innererror")
        if isinstance(inner, dict) and not code:
            code = str(inner.get("code") or "")
    else:
        message, code, kind = str(error).strip()[:1000], "", ""
    if re.fullmatch(r"[45]\d\d", code, re.ASCII):  # OpenRouter and others put the status into the body
        status, code = int(code) if status < 400 else status, ""
    elif status < 300:
        status = _STATUSES.get(code) or _STATUSES.get(kind) or (429 if _OVERLOADED.search(message) else 500)
    if 300 <= status < 400:  # following it would hand the credential to whoever the address belongs to
        message = f"the service redirects to {headers.get('location')}: give that address with --model-base-url"
    should = {"true": True, "false": False}.get(headers.get("x-should-retry") or "")
    return APIError(
        status,
        message or "no message",
        code=code,
        kind=kind,
        retry_after=retry_after(headers, message),
        should_retry=should,
        request_id=headers.get("x-request-id") or headers.get("apim-request-id"),
    )

"""What a Kubernetes API server says when it refuses: a Status with a code, a reason and details."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

__all__ = ["ApiError", "already_there", "bad_request", "expired", "forbidden", "invalid", "not_found"]

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class ApiError(Exception):
    """A request that is refused.

    Args:
        code: the HTTP status.
        message: for people.
        reason: the machine's word for it; by default the usual one of ``code``.
        headers: of the response, such as ``retry-after``.
        details: of the Status.
    """

    def __init__(
        self,
        code: int,
        message: str,
        reason: str | None = None,
        *,
        headers: dict[str, str] | None = None,
        **details: Any,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.headers = headers or {}
        phrase = HTTPStatus(code).phrase if code in HTTPStatus._value2member_map_ else "Unknown"
        self.status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason or _REASONS.get(code, phrase.replace(" ", "")),
            **({"details": details} if details else {}),
            "code": code,
        }


def bad_request(message: str) -> ApiError:
    """400."""
    return ApiError(400, message)


def not_found(resource: str, name: str) -> ApiError:
    """404 of an object."""
    return ApiError(404, f'{resource} "{name}" not found', name=name, kind=resource)


def already_there(resource: str, name: str) -> ApiError:
    """409 of a name that is taken."""
    return ApiError(409, f'{resource} "{name}" already exists', "AlreadyExists", name=name, kind=resource)


def forbidden(resource: str, name: str, why: str) -> ApiError:
    """403 of an object that admission refuses."""
    return ApiError(403, f'{resource} "{name}" is forbidden: {why}', name=name, kind=resource)


def invalid(kind: str, name: str, causes: list[tuple[str, str, str]]) -> ApiError:
    """422 of an object that validation refuses; a cause is reason, field and message."""
    said = [f"{field}: {message}" for _, field, message in causes]
    told = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    listed = [{"reason": reason, "message": message, "field": field} for reason, field, message in causes]
    return ApiError(422, f'{kind} "{name}" is invalid: {told}', name=name, kind=kind, causes=listed)


def expired(message: str = "too old resource version") -> ApiError:
    """410 of a resource version that is no longer kept."""
    return ApiError(410, message)

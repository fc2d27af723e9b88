"""What the SDK raises, as errors of this provider, and what they mean for the next request."""

from __future__ import annotations

import re
from typing import Any

from botocore import exceptions
from botocore.eventstream import ParserError
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from proctor.contracts import Retry
from proctor.model import retry_after
from proctor.schema import ModelOutput, StopReason

__all__ = [
    "EXPIRED",
    "BedrockError",
    "ConnectionFailed",
    "MalformedResponse",
    "classify",
    "refused_output",
    "translated",
]


class BedrockError(Exception):
    """Bedrock refused a request, or the SDK did before it was sent.

    Attributes:
        status: the HTTP status; 0 for an exception inside of a stream, or when nothing was sent.
        code: the exception's name, such as ``ThrottlingException``.
        message: what it said.
        retry_after: seconds that it asked to wait, or None.
        renewed: whether there are other credentials by now, so that it is worth another try.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.message = message
        self.retry_after = retry_after
        self.renewed = False
        label = " ".join(str(part) for part in (status, code) if part)
        where = f" (request {request_id})" if request_id else ""
        super().__init__(f"{label}: {message}{where}")


class ConnectionFailed(ConnectionError):
    """There was no complete response: no connection, or one that broke."""


class MalformedResponse(Exception):
    """Bedrock said success, and what came is not a reply (cut short or damaged on the way)."""


EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"})
"""Codes that say that other credentials would do."""

_RATE_LIMIT = frozenset(
    {
        "ThrottlingException",
        "Throttling",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "SlowDown",
    }
)
_TRANSIENT = frozenset(
    {
        "InternalServerException",
        "InternalFailure",
        "ModelErrorException",
        "ModelNotReadyException",
        "ModelStreamErrorException",
        "ModelTimeoutException",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
    }
)
_BUSY = re.compile(r"too many|capacity|reduce your request rate|slow down|throttl", re.IGNORECASE)
_USED_UP = re.compile(r"per day|daily", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"input is too long|prompt is too long|too many (?:input )?tokens|maximum context length|context (?:window|length)"
    r"|exceeds? (?:the )?(?:model'?s )?max(?:imum)? (?:input |sequence )?(?:tokens|length)"
    r"|input (?:length|tokens) exceed|expected max\w*: \d+, actual: \d+",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content filter|responsible ai|blocked by (?:our|the) (?:content|safety)", re.IGNORECASE)
_BROKEN = (
    exceptions.ConnectionError,
    exceptions.HTTPClientError,
    exceptions.IncompleteReadError,
    HTTPError,  # of a stream, whose reading the SDK leaves to urllib3
    OSError,
)
_CANONICAL = re.compile(r"\s*The Canonical String.*", re.DOTALL)  # it repeats the headers, the session's token too
_LONGEST = 2000  # characters


def _in_parser(error: Exception) -> bool:
    """Whether the SDK's parser stumbled: JSON that is no object (a proxy's ``null``) it does not expect."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__") == "botocore.parsers"


def translated(error: Exception, secrets: tuple[str, ...]) -> Exception:
    """``error`` of the SDK as one of this provider; others stay what they are.

    Args:
        error: what a call raised.
        secrets: what is cut out of messages.
    """
    if isinstance(error, exceptions.ClientError):
        return _refusal(error, secrets)
    if isinstance(error, (ResponseParserError, ParserError)) or _in_parser(error):
        return MalformedResponse(f"the response can't be read ({type(error).__name__}: {str(error)[:300]})")
    if isinstance(error, exceptions.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return BedrockError(0, "SSLError", f"{error}; AWS_CA_BUNDLE names the certificates of a proxy")
    if isinstance(error, _BROKEN):
        return ConnectionFailed(f"no complete answer: {type(error).__name__}: {error}")
    if isinstance(error, exceptions.MetadataRetrievalError):
        return ConnectionFailed(f"no credentials from the instance's metadata: {error}")
    if isinstance(error, exceptions.BotoCoreError):  # credentials that are none, arguments that the API does not know
        return BedrockError(0, type(error).__name__, str(error))
    return error


def _refusal(error: Any, secrets: tuple[str, ...]) -> BedrockError:
    said = error.response.get("Error", {})
    meta = error.response.get("ResponseMetadata", {})
    code = str(said.get("Code") or "")
    message = _CANONICAL.sub("", str(said.get("Message") or "no message"))[:_LONGEST]
    for secret in secrets:
        message = message.replace(secret, "[key]")
    headers = meta.get("HTTPHeaders", {})
    return BedrockError(
        int(meta.get("HTTPStatusCode") or 0),
        code[:1].upper() + code[1:],  # in a stream they begin with a small letter
        message,
        retry_after=retry_after(headers),
        request_id=meta.get("RequestId"),
    )


def classify(exc: BaseException) -> Retry | None:
    """What ``exc`` means for a retry; None when it is no error of this provider."""
    if isinstance(exc, (ConnectionFailed, MalformedResponse)):
        return Retry("transient")
    if not isinstance(exc, BedrockError):
        return None
    if exc.renewed:
        return Retry("transient")
    if exc.code in _RATE_LIMIT or exc.status == 429:
        if exc.code == "ModelNotReadyException":  # an imported model that is being loaded: less would not help
            return Retry("transient", exc.retry_after)
        if _USED_UP.search(exc.message):
            return Retry("permanent")
        return Retry("rate_limit", exc.retry_after)
    if exc.code in ("ServiceUnavailableException", "ServiceUnavailable") and _BUSY.search(exc.message):
        return Retry("rate_limit", exc.retry_after)
    if exc.code in _TRANSIENT or exc.status >= 500 or exc.status in (408, 424):
        return Retry("transient", exc.retry_after)
    return Retry("permanent")


def refused_output(error: Exception, model: str) -> ModelOutput | None:
    """The output that a refusal of the content stands for, or None when it is an error."""
    if not isinstance(error, BedrockError) or error.code != "ValidationException":
        return None
    reason: StopReason
    if _TOO_LONG.search(error.message):
        reason = "model_length"
    elif _FILTERED.search(error.message):
        reason = "content_filter"
    else:
        return None
    return ModelOutput.from_content(model, error.message, reason, error=error.message)

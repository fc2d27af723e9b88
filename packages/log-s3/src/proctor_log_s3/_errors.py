"""What the SDK raises, as what the contract of a log store raises."""

from __future__ import annotations

import errno

from botocore import exceptions

__all__ = ["EXPIRED", "EmptyRangeError", "code_of", "translated"]


class EmptyRangeError(OSError):
    """No byte of the object is in the range that was asked for."""


EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired", "400"})
"""Codes that say that other credentials would do; ``400`` is all that a HEAD hears, whose replies have no body."""

_MISSING = frozenset({"NoSuchKey", "NoSuchUpload", "NotFound", "404"})
_CHANGED = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "412"})
_DENIED = frozenset({"AccessDenied", "AllAccessDisabled", "Forbidden", "403"})
_UNKNOWN_KEY = frozenset(
    {"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "AuthorizationHeaderMalformed"}
)
_BUSY = frozenset(
    {"SlowDown", "ServiceUnavailable", "Throttling", "ThrottlingException", "RequestLimitExceeded", "503"}
)
_FULL = frozenset({"XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "QuotaExceeded", "507"})
_NO_CREDENTIALS = (
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.CredentialRetrievalError,
    exceptions.ProfileNotFound,
    exceptions.NoAuthTokenError,
    exceptions.SSOError,
    exceptions.TokenRetrievalError,
    exceptions.InvalidConfigError,
)
_HOW = (
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; `aws sts get-caller-identity` shows whom you are"
)


def code_of(error: Exception) -> str:
    """The store's code for what went wrong, such as ``SlowDown``; empty when it said nothing."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, exceptions.ClientError) else ""


def translated(error: Exception, name: str) -> OSError:
    """``error`` as an ``OSError``: a ``FileNotFoundError`` or ``PermissionError`` stays so; all others may pass,
    ``ENOSPC`` when there is space again.

    Args:
        error: raised by botocore.
        name: what was asked for, ``bucket/key``.
    """
    where, bucket = f"s3://{name}", name.partition("/")[0]
    if not isinstance(error, exceptions.ClientError):
        if isinstance(error, _NO_CREDENTIALS):
            return PermissionError(errno.EACCES, f"there are no usable AWS credentials ({error}). {_HOW}", where)
        if isinstance(
            error, (exceptions.ParamValidationError, exceptions.InvalidEndpointConfigurationError, ValueError)
        ):
            return OSError(errno.EINVAL, f"it is no address of an object store ({error})", where)
        return OSError(errno.EHOSTUNREACH, f"the object store can't be reached ({error})", where)
    code, said = code_of(error), error.response.get("Error", {}).get("Message", "")
    if code == "NoSuchBucket":
        return FileNotFoundError(
            errno.ENOENT, f"there is no bucket {bucket!r}. Make it (`aws s3 mb s3://{bucket}`) or name another", where
        )
    if code in ("InvalidRange", "416"):
        return EmptyRangeError(errno.EINVAL, "there is nothing in that range", where)
    if code in _MISSING:
        return FileNotFoundError(errno.ENOENT, "there is no such log", where)
    if code in _CHANGED:
        return FileExistsError(errno.EEXIST, "somebody else has changed the log; read it again", where)
    if code in _UNKNOWN_KEY:
        return PermissionError(
            errno.EACCES, f"the store does not accept the credentials ({code}: {said}). {_HOW}", where
        )
    if code in _DENIED:
        return PermissionError(
            errno.EACCES,
            f"access is denied ({code}). Logs need s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject on "
            f"{bucket!r}",
            where,
        )
    if code in EXPIRED:
        return OSError(errno.EAGAIN, f"the credentials have expired, it seems ({code}); renew them", where)
    if code == "RequestTimeTooSkewed":
        return OSError(errno.EAGAIN, f"{skewed(error)}. Set the clock of this machine", where)
    if code in _FULL:
        return OSError(errno.ENOSPC, f"the object store has no space left ({code})", where)
    if code in _BUSY:
        return OSError(errno.EBUSY, f"the object store asks to slow down ({code})", where)
    return OSError(errno.EIO, f"the object store failed ({code}: {said})", where)


def skewed(error: exceptions.ClientError) -> str:
    """How far the clocks are apart, as far as the reply says."""
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    server = headers.get("date", "")
    return f"the clock of this machine is too far from the object store's{f' (there it is {server})' if server else ''}"

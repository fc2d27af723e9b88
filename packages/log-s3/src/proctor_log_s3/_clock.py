"""The clock that requests are signed by: the store's own, once it has refused those signed by this machine's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from botocore import exceptions
from botocore.auth import AUTH_TYPE_MAPS, SIGV4_TIMESTAMP, S3SigV4Auth

from proctor_log_s3._errors import code_of

__all__ = ["Clock"]

_SIGNER = "proctor-s3v4"
_AHEAD = "proctor_ahead"  # where the signer finds the difference, in what botocore keeps with a request
_PLAIN = ("v4", "s3v4")
_TOLERATED = timedelta(
    minutes=5
)  # stores refuse at 15; a HEAD hears no reason, and a permission that is missing is none


class Clock:
    """How far the store's clock is ahead of this machine's; while it is not, nothing is changed. For all threads."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def attach(self, client: Any) -> None:
        """Have the requests of a client of the SDK signed by this clock."""
        client.meta.events.register_first("choose-signer.s3", self._choose)

    def learn(self, error: Exception) -> bool:
        """Whether the store refused a request for its time, and says what time it has: the next one will do."""
        if not isinstance(error, exceptions.ClientError) or code_of(error) not in ("RequestTimeTooSkewed", "403"):
            return False
        said = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date", "")
        try:
            ahead = parsedate_to_datetime(said) - datetime.now(UTC)
        except (TypeError, ValueError):
            return False
        if abs(ahead - self.ahead) < _TOLERATED:
            return False  # it was signed by that time already
        self.ahead = ahead
        return True

    def _choose(self, signature_version: Any, context: dict[str, Any], **_: Any) -> str | None:
        if not self.ahead or signature_version not in _PLAIN or context.get("auth_type") not in (None, *_PLAIN):
            return None
        context[_AHEAD] = self.ahead
        return _SIGNER


class _Signer(S3SigV4Auth):  # type: ignore[misc]  # the SDK has no types
    """Signs by the store's clock. Where the SDK does not come by here, the store goes on refusing, and says why."""

    def _modify_request_before_signing(self, request: Any) -> None:
        time = datetime.now(UTC) + request.context[_AHEAD]
        request.context["timestamp"] = time.strftime(SIGV4_TIMESTAMP)
        super()._modify_request_before_signing(request)


AUTH_TYPE_MAPS[_SIGNER] = _Signer

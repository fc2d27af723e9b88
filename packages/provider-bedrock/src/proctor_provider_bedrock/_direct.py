"""A call of Converse by the parts of the SDK: its serializer, signer, connections and parser, one after the other.

The SDK's own way from one to the next, through events, copies of the request and the resolution of an endpoint that
never changes, takes a third of what a call costs, and calls are what a run of thousands of samples is made of. What
goes over the wire is the same.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.parsers import create_parser
from botocore.serialize import create_serializer

__all__ = ["DirectCalls"]

_OPERATION = "Converse"


class DirectCalls:
    """What calls of Converse to one place share.

    Args:
        client: the SDK's client of that place.
        session: sends requests, as the client's own.
        credentials: those of the SDK's chain, which renew themselves; None for requests that are not signed.
    """

    def __init__(self, client: Any, session: Any, credentials: Any) -> None:
        meta = client.meta
        self._model = meta.service_model.operation_model(_OPERATION)
        self._session = session
        self._credentials = credentials
        self._exceptions = client.exceptions
        self._signed_for = meta.service_model.signing_name, meta.region_name
        self._address = meta.endpoint_url.rstrip("/")
        self._user_agent = meta.config.user_agent
        protocol = meta.service_model.metadata["protocol"]
        self._serializer = create_serializer(protocol, include_validation=False)
        self._parser = create_parser(protocol)

    def send(self, request: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        """The response to one request, and what the SDK's client would raise.

        Args:
            request: the arguments of Converse.
            headers: what goes along.

        Raises:
            ClientError: Bedrock refused.
            HTTPClientError: there was no response.
            ResponseParserError: the response can't be read.
        """
        wire = self._serializer.serialize_to_request(request, self._model)
        query = f"?{urlencode(wire['query_string'])}" if wire.get("query_string") else ""
        own = {"User-Agent": self._user_agent, **wire["headers"], **headers}
        sent = AWSRequest(wire["method"], f"{self._address}{wire['url_path']}{query}", own, wire["body"])
        if self._credentials is not None:
            # Frozen, as a renewal may come between the reading of one part and the next.
            SigV4Auth(self._credentials.get_frozen_credentials(), *self._signed_for).add_auth(sent)
        reply = self._session.send(sent.prepare())
        told = {
            "headers": reply.headers,
            "status_code": reply.status_code,
            "context": {"operation_name": _OPERATION},
            "body": reply.content,
        }
        parsed: dict[str, Any] = self._parser.parse(told, self._model.output_shape)
        if reply.status_code >= 300:
            raise self._exceptions.from_code(parsed.get("Error", {}).get("Code"))(parsed, _OPERATION)
        return parsed

"""The SDK's client: one per credentials and address, shared by models and threads, renewed when credentials change."""

from __future__ import annotations

import logging
import threading
from typing import Any
from weakref import WeakSet, WeakValueDictionary

import botocore
from botocore.config import Config

from proctor_provider_bedrock._args import BedrockArgs
from proctor_provider_bedrock._connections import Call, current, track_connections
from proctor_provider_bedrock._direct import DirectCalls
from proctor_provider_bedrock._place import Place
from proctor_provider_bedrock._session import new_session

__all__ = ["Client", "shared_client"]

logger = logging.getLogger("proctor.provider.bedrock")

_CONNECTIONS = 4096
"""Connections that are kept open. The gate decides how many are used; fewer kept than used would be made anew for each
request, and a number costs nothing until then."""


class Client:
    """Requests to one place.

    Attributes:
        users: the models that use it; the last one to leave closes its connections.
    """

    def __init__(self, place: Place, args: BedrockArgs) -> None:
        self.users: WeakSet[Any] = WeakSet()
        self._place = place
        self._timeouts = (args.connect_timeout, args.read_timeout)
        self._lock = threading.Lock()
        self._bearer = {} if place.api_key is None else {"Authorization": f"Bearer {place.api_key}"}
        self._made, self._direct, self._owner = self._make()

    def send(self, operation: str, request: dict[str, Any], call: Call) -> dict[str, Any]:
        """The response to one request; in a worker thread, and exactly one request.

        Raises:
            Exception: whatever the SDK raises.
        """
        current.set(call)  # in the thread's own copy of the context
        if operation == "converse" and self._direct is not None:
            return self._direct.send(request, {**call.headers, **self._bearer})
        response: dict[str, Any] = getattr(self._made, operation)(**request)
        return response

    def renew(self) -> bool:
        """Look for other credentials after the service called these expired; whether there are any.

        Those that renew themselves have done so; those in files and variables may be new ones by now.
        """
        if self._place.api_key is not None:
            return False
        with self._lock:
            made, direct, owner = self._make()
            if owner == self._owner:
                return False
            old, self._made, self._direct, self._owner = self._made, made, direct, owner
            old.close()  # calls that still use it close their connections when they are done
            return True

    def close(self) -> None:
        """Close the connections that nobody uses; the client can be used again."""
        self._made.close()

    def _make(self) -> tuple[Any, DirectCalls | None, tuple[str | None, ...]]:
        place = self._place
        session = new_session(place.profile)
        connect, read = self._timeouts
        settings: dict[str, Any] = {} if place.api_key is None else {"signature_version": botocore.UNSIGNED}
        config = Config(
            connect_timeout=connect,
            read_timeout=read,
            max_pool_connections=_CONNECTIONS,
            tcp_keepalive=True,  # a reply may take longer than routers remember a silent connection
            retries={"mode": "standard", "total_max_attempts": 1},  # the core retries
            parameter_validation=False,  # a seventh of what a call costs; Bedrock checks again, in its own words
            user_agent_extra="proctor",
            **settings,
        )
        client = session.client("bedrock-runtime", region_name=place.region, endpoint_url=place.base_url, config=config)
        bearer = self._bearer

        def add_headers(params: dict[str, Any], **_: Any) -> None:
            call = current.get()
            params["headers"].update(bearer if call is None else {**call.headers, **bearer})

        client.meta.events.register("before-call.bedrock-runtime", add_headers)
        connections = track_connections(client)
        if connections is None:
            logger.warning("this version of botocore (%s) can't end a cancelled call early", botocore.__version__)
            return client, None, _owner(session, place)
        credentials = None if place.api_key else session.get_credentials()
        return client, DirectCalls(client, connections, credentials), _owner(session, place)


def _owner(session: Any, place: Place) -> tuple[str | None, ...]:
    """What changes when somebody puts other credentials in place; empty for those that renew themselves."""
    credentials = None if place.api_key else session.get_credentials()
    if credentials is None or not place.secrets:
        return ()
    frozen = credentials.get_frozen_credentials()
    return frozen.access_key, frozen.token


_clients: WeakValueDictionary[tuple[Any, ...], Client] = WeakValueDictionary()
_making = threading.Lock()


def shared_client(place: Place, args: BedrockArgs) -> Client:
    """The client of a place: making one takes a tenth of a second and megabytes, so models share it."""
    key = (place.connection_key(), place.profile, args.connect_timeout, args.read_timeout)
    with _making:
        client = _clients.get(key)
        if client is None:
            client = _clients[key] = Client(place, args)
        return client

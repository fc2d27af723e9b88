"""Posting JSON: aiohttp under asyncio, httpx2 under trio; one client per credential and event loop.

aiohttp costs a quarter of what httpx does per request, and knows no trio; so both are here, behind one function. The
OpenAI SDK is not: its import alone takes about a second.
"""

from __future__ import annotations

import asyncio
import errno
import importlib
import json
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakSet

import anyio
from pydantic_core import PydanticSerializationError, from_json, to_json

from proctor_provider_openai._errors import ConnectionFailed

if TYPE_CHECKING:
    import aiohttp
    import httpx2

__all__ = ["Connections", "Poster", "decode", "encode", "load_client"]

CONNECT_TIMEOUT = 30.0
"""Seconds for a connection, TLS included; the time for the answer is the core's to watch."""

CLOSE_TIMEOUT = 5.0
"""Seconds that closing connections may take."""


class Poster(ABC):
    """A pool of connections in one event loop. How many are open at once is the connection gate's business.

    Attributes:
        closed: whether it can't be used any more.
        users: the models that use it; the last one to leave closes it.
    """

    def __init__(self) -> None:
        self.closed = False
        self.users: WeakSet[Connections] = WeakSet()

    @abstractmethod
    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Send one request and return status, headers and body of the response.

        Raises:
            ConnectionFailed: when there was no complete response.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close all connections."""


class _AiohttpPoster(Poster):
    def __init__(self, base_url: str) -> None:
        super().__init__()
        import aiohttp
        import yarl

        self._url = yarl.URL
        self._urls: dict[str, yarl.URL] = {}
        self._failures = (aiohttp.ClientError, ConnectionError, OSError)
        # No limit here: the gate is the limit, and a second queue would hide waiting from it. The proxy is looked up
        # once (trust_env would do so for each request, and reads ~/.netrc for credentials that nobody meant for us).
        self._session: aiohttp.ClientSession = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=_proxy(base_url),
            auto_decompress=True,
        )

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        target = self._urls.get(url)
        if target is None:
            target = self._urls[url] = self._url(url)
        try:
            async with self._session.post(target, headers=headers, data=body, allow_redirects=False) as response:
                return response.status, response.headers, await response.read()
        except TimeoutError as error:
            raise ConnectionFailed(f"no connection to {target.host} within {CONNECT_TIMEOUT:g} s") from error
        except self._failures as error:
            raise ConnectionFailed(_describe(url, error)) from error

    async def aclose(self) -> None:
        await self._session.close()


class _Httpx2Poster(Poster):
    def __init__(self, base_url: str) -> None:
        super().__init__()
        import httpx2

        self._failures = (httpx2.TransportError, OSError)
        proxy = _proxy(base_url)
        self._client: httpx2.AsyncClient = httpx2.AsyncClient(
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=15.0),
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT),
            trust_env=False,
            proxy=proxy,
        )

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        try:
            response = await self._client.post(url, headers=dict(headers), content=body, follow_redirects=False)
        except self._failures as error:
            raise ConnectionFailed(_describe(url, error)) from error
        return response.status_code, response.headers, response.content

    async def aclose(self) -> None:
        await self._client.aclose()


def _describe(url: str, error: BaseException) -> str:
    parts = urlsplit(url)
    if _was_refused(error):
        port = "" if parts.port is None else f":{parts.port}"
        return (
            f"nothing listens at {parts.scheme}://{parts.hostname}{port} (connection refused): is the server running?"
        )
    return f"no complete answer from {parts.hostname}: {type(error).__name__}: {error}"


def _was_refused(error: BaseException | None) -> bool:
    """Whether every address refused the connection; libraries wrap the system's own word for that in several ways."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno == errno.ECONNREFUSED:
            return True
        if isinstance(error, BaseExceptionGroup):
            return all(_was_refused(one) for one in error.exceptions)
        error = error.__cause__ or error.__context__
    return False


def _proxy(base_url: str) -> str | None:
    parts = urlsplit(base_url)
    if parts.hostname is None or urllib.request.proxy_bypass(parts.hostname):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


_clients: dict[tuple[str, object], Poster] = {}


def _loop() -> object:
    """The running loop: an asyncio loop, or trio's token."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        import trio

        return trio.lowlevel.current_trio_token()


def load_client() -> None:
    """Import the HTTP library of the running loop; outside one, leave it to the first request.

    It takes 0.2 s, in which no other sample gets anywhere: better before the first one starts.
    """
    try:
        name = "aiohttp" if isinstance(_loop(), asyncio.AbstractEventLoop) else "httpx2"
    except (RuntimeError, ImportError):
        return
    importlib.import_module(name)


class Connections:
    """One model's use of the clients of its credential and address, which it shares with other models.

    Args:
        key: the connection key.
        base_url: the address, for the proxy.
    """

    def __init__(self, key: str, base_url: str) -> None:
        self._key = key
        self._base_url = base_url
        self._used: dict[object, Poster] = {}

    def client(self) -> Poster:
        """The running loop's client, made by the first model that asks."""
        loop = _loop()
        client = self._used.get(loop)
        if client is None or client.closed:
            _forget_closed_loops(self._used)
            client = self._used[loop] = _client(self._key, self._base_url, loop)
            client.users.add(self)
        return client

    async def aclose(self) -> None:
        """Leave the running loop's client, and close it unless other models use it too."""
        loop = _loop()
        client = self._used.pop(loop, None)
        if client is None:
            return
        client.users.discard(self)
        if client.users or client.closed:
            return
        client.closed = True  # at once: who asks while it is being closed gets a new one
        if _clients.get((self._key, loop)) is client:
            del _clients[self._key, loop]
        # Also when the run is being cancelled: half-closed connections would be warned about at exit.
        with anyio.move_on_after(CLOSE_TIMEOUT, shield=True):
            await client.aclose()


def _client(key: str, base_url: str, loop: object) -> Poster:
    client = _clients.get((key, loop))
    if client is None or client.closed:
        for known in [known for known in _clients if _is_over(known[1])]:
            del _clients[known]
        asynchronous = isinstance(loop, asyncio.AbstractEventLoop)
        client = _AiohttpPoster(base_url) if asynchronous else _Httpx2Poster(base_url)
        _clients[key, loop] = client
    return client


def _is_over(loop: object) -> bool:
    return isinstance(loop, asyncio.AbstractEventLoop) and loop.is_closed()


def _forget_closed_loops(used: dict[object, Poster]) -> None:
    for loop in [loop for loop, client in used.items() if client.closed or _is_over(loop)]:
        del used[loop]


def encode(body: dict[str, Any]) -> bytes:
    """``body`` as JSON. Lone surrogates, which UTF-8 can't hold, become JSON escapes."""
    try:
        return to_json(body)
    except (PydanticSerializationError, UnicodeEncodeError):
        return json.dumps(body).encode("ascii")


def decode(body: bytes) -> Any:
    """The JSON value in ``body``.

    Raises:
        ValueError: if there is none.
    """
    try:
        return from_json(body)
    except ValueError:
        return json.loads(body.decode("utf-8", "replace"))

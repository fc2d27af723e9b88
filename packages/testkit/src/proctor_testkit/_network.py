from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_state = {"installed": False, "depth": 0}
_LOCAL_NAMES = frozenset({"", "localhost", "ip6-localhost", "0.0.0.0", "::"})


class OutsideNetworkError(OSError):
    """A test tried to reach an address outside this machine."""


@contextmanager
def loopback_only() -> Iterator[None]:
    """Refuse connections and name look-ups that leave this machine while the block runs.

    It is an audit hook, so that it also holds for C code and for every async back-end; Python has no way to remove one,
    so it stays installed and does nothing outside the block.

    Raises:
        OutsideNetworkError: inside the code under test, at the call that would have left the machine.
    """
    if not _state["installed"]:
        sys.addaudithook(_audit)
        _state["installed"] = True
    _state["depth"] += 1
    try:
        yield
    finally:
        _state["depth"] -= 1


# `state`: the names of a module are gone before the last events of a process.
def _audit(event: str, args: tuple[Any, ...], state: Mapping[str, Any] = _state) -> None:
    if not state["depth"]:
        return
    if event == "socket.connect" and isinstance(args[1], tuple):
        _check(args[1][0])
    elif event == "socket.getaddrinfo":
        _check(args[0])


def _check(host: object) -> None:
    if host is None:
        return
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    if text.lower() in _LOCAL_NAMES:
        return
    try:
        if ipaddress.ip_address(text.partition("%")[0]).is_loopback:
            return
    except ValueError:
        pass  # a name that is not this machine's own
    raise OutsideNetworkError(f"tests stay on this machine, but {text!r} was asked for: start a server on loopback")

"""Datasets from the web: downloaded once, kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from proctor.contracts import UsageError

_TIMEOUT = 60.0  # seconds without a byte


def is_url(location: str) -> bool:
    """Whether ``location`` is to be downloaded."""
    return location.lower().startswith(("https://", "http://"))


def cache_folder() -> Path:
    """Where downloads are kept: ``PROCTOR_CACHE_DIR``, else the platform's folder for caches."""
    if own := os.environ.get("PROCTOR_CACHE_DIR"):
        return Path(own).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "proctor"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "proctor"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "proctor"


def fetch(url: str) -> str:
    """The path of a local copy of ``url``, downloaded unless it is in the cache already.

    Raises:
        UsageError: if it can't be downloaded; the cache then holds nothing of it.
    """
    name = os.path.basename(unquote(urlsplit(url).path)) or "data"
    target = cache_folder() / "datasets" / hashlib.blake2b(url.encode(), digest_size=16).hexdigest() / name
    if target.exists():
        return str(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Into a file of its own first: two processes may download at once, and half a file must never count.
    handle, partial = tempfile.mkstemp(dir=target.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            _download(url, file.write)
        os.replace(partial, target)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)
    return str(target)


def _download(url: str, write: Callable[[bytes], object]) -> None:
    import httpx2  # heavy, and most datasets are local

    try:
        with httpx2.stream("GET", url, follow_redirects=True, timeout=_TIMEOUT) as response:
            response.raise_for_status()
            for chunk in response.iter_bytes():
                write(chunk)
    except httpx2.HTTPStatusError as error:
        raise UsageError(
            f"the dataset {url} can't be downloaded: the server answered {error.response.status_code} "
            f"{error.response.reason_phrase}. Check the address."
        ) from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise UsageError(
            f"the dataset {url} can't be downloaded: {str(error) or type(error).__name__}. Check the address and "
            f"the network, or download the file and give its path."
        ) from None

"""Faults to be planted in what ``proctor plugins new`` writes, and the checks that must see each of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A change that a careless author could have made.

    Attributes:
        kind: of the package.
        what: in words.
        file: in the package's own folder below ``src``.
        old: what stands there once.
        new: what takes its place.
        checks: exactly these fail.
        slow: so do these, of the checks that take more than a few seconds.
    """

    kind: str
    what: str
    file: str
    old: str
    new: str
    checks: frozenset[str]
    slow: frozenset[str]


def _fault(kind: str, what: str, file: str, old: str, new: str, *checks: str, slow: str = "") -> Fault:
    return Fault(kind, what, file, old, new, frozenset(checks), frozenset(slow.split()))


FAULTS = (
    _fault(
        "model-provider",
        "the client asks again by itself",
        "_api.py",
        "        # The core keeps it for the log",
        "        if response.status_code >= 500:\n"
        '            response = await self._connected().post("/chat/completions", json=body)\n'
        "        # The core keeps it for the log",
        "model.no_retry",
        "model.raw_failure",
    ),
    _fault(
        "model-provider",
        "what the server says about waiting is not heard",
        "_api.py",
        '_seconds(headers.get("retry-after"))',
        "None",
        "model.retry_after",
    ),
    _fault(
        "model-provider",
        "the key is in what goes to the log",
        "_api.py",
        "record_call(body, reply",
        'record_call({**body, "key": self._key}, reply',
        "model.raw_call",
        "model.raw_failure",
    ),
    _fault(
        "model-provider",
        "tokens are not counted",
        "_wire.py",
        'usage.get("prompt_tokens", 0)',
        "0",
        "model.usage",
        "model.usage_counts",
    ),
    _fault(
        "model-provider",
        "a reply that was cut off looks finished",
        "_wire.py",
        '"length": "max_tokens"',
        '"length": "stop"',
        "model.max_tokens",
    ),
    _fault(
        "log-store",
        "an edit does not look whether the log is still what it was",
        "_store.py",
        "if if_match is not None and self.stat(name).etag != if_match:",
        "if if_match is not None and not self.stat(name).etag:",
        "store.replace_conflict",
        "store.replace_race",
    ),
    _fault(
        "log-store",
        "two contents of one moment share an etag",
        "_store.py",
        "-{found.st_mtime_ns:x}",
        "",
        "store.etag",
    ),
    _fault(
        "log-store",
        "the end of a longer directory stays",
        "_store.py",
        "os.ftruncate(self._handle, size)",
        "os.ftruncate(self._handle, max(size, os.fstat(self._handle).st_size))",
        "store.append",
        "store.empty_commit",
        "store.list_live",
        slow="store.large",
    ),
    _fault(
        "log-store",
        "a name can be taken twice",
        "_store.py",
        "os.O_CREAT | os.O_EXCL",
        "os.O_CREAT",
        "store.create",
        "store.create_race",
    ),
    _fault(
        "sandbox",
        "the folder of a sample stays",
        "_sandbox.py",
        "await to_thread.run_sync(_remove, env.folder.parent)",
        "await to_thread.run_sync(str, env.folder)",
        "sandbox.cleanup",
        "sandbox.owner",
    ),
    _fault(
        "sandbox",
        "bytes that are no text are read as if they were",
        "_sandbox.py",
        'data.decode("utf-8") if text',
        'data.decode("utf-8", "replace") if text',
        "sandbox.not_text",
    ),
    _fault(
        "display",
        "warnings are swallowed",
        "_display.py",
        'self._write(text if level == "info" else f"{level}: {text}")',
        'if level == "info":\n            self._write(text)',
        "display.warnings",
    ),
    _fault(
        "display",
        "the results are not shown",
        "_display.py",
        "for result in unit.results:",
        "for result in unit.results[:0]:",
        "display.results",
    ),
    _fault(
        "observer",
        "each event takes the place of the one before",
        "_observer.py",
        'self._file.open("a", encoding="utf-8")',
        'self._file.open("w", encoding="utf-8")',
        "observer.complete",
    ),
)

"""A log in the ``.json`` format, opened for reading."""

from __future__ import annotations

import json
import re
import threading
from typing import Any

from pydantic import ValidationError

from proctor.contracts import LogStore, Stat
from proctor.log._expand import Resolve, expand_pools, resolve_tree
from proctor.log._json import decode
from proctor.log._layout import sample_order
from proctor.log._log_file import LogFile, check_version, derived, misfit
from proctor.log._steady import steadily
from proctor.log._summary import summarise
from proctor.log._zip_read import BadLogError
from proctor.schema import EvalLog, EvalSample, EvalSampleSummary

__all__ = ["JsonFile", "top_level"]

_HEAD = 1 << 16  # bytes of a log that are looked at first for its header
_PROBE = re.compile(r"\s*(.)", re.DOTALL)


class JsonFile(LogFile):
    """A log in the ``.json`` format. Everything but the header needs the whole file."""

    def __init__(self, location: str, store: LogStore, name: str, stat: Stat) -> None:
        super().__init__(location, store, name, stat)
        self._logs: dict[Resolve, EvalLog] = {}
        self._lock = threading.Lock()

    def header(self, reductions: bool = True) -> EvalLog:
        return steadily(self._store, self._name, self._stat, self._header)

    def _header(self, stat: Stat) -> EvalLog:
        log = self._validated(_json_header(self._store, self._name, stat.size, self.location))
        log.etag = stat.etag
        return derived(log, self.location)

    def whole(self, resolve: Resolve = False) -> EvalLog:
        """The log with all samples."""
        return steadily(self._store, self._name, self._stat, lambda stat: self._whole(stat, resolve))

    def _whole(self, stat: Stat, resolve: Resolve) -> EvalLog:
        raw = self._store.read(self._name)
        if resolve:
            tree = self._tree(raw)
            for sample in tree.get("samples") or ():
                if isinstance(sample, dict):
                    resolve_tree(sample, full=resolve != "core")
            log = self._validated(tree)
        else:
            try:
                log = EvalLog.model_validate_json(raw)
            except ValidationError:
                log = self._validated(self._tree(raw))
        for sample in log.samples or ():
            expand_pools(sample)
        log.etag = stat.etag
        return derived(log, self.location)

    def text(self) -> str:
        """The whole file; bytes that are no UTF-8 (a cut character) are replaced."""
        return self._store.read(self._name).decode("utf-8", "replace")

    def _tree(self, raw: bytes) -> dict[str, Any]:
        try:
            tree = decode(raw)
        except ValueError as error:
            raise BadLogError(
                f"{self.location} is not whole JSON ({error}). If its run has died, `proctor log recover "
                f"{self.location}` makes a log of what is whole."
            ) from error
        if not isinstance(tree, dict):
            raise BadLogError(f"{self.location} is not an evaluation log: it is no JSON object")
        return tree

    def _validated(self, tree: dict[str, Any]) -> EvalLog:
        check_version(tree.get("version", 2), self.location)
        try:
            return EvalLog.model_validate(tree)
        except ValidationError as error:
            raise BadLogError(f"{self.location} is not an evaluation log: {misfit(error)}") from error

    def _loaded(self, resolve: Resolve) -> list[EvalSample]:
        with self._lock:  # several threads ask at once, and the file is read as a whole
            if resolve not in self._logs:
                self._logs[resolve] = self.whole(resolve)
        return self._logs[resolve].samples or []

    def keys(self) -> list[tuple[str, int]]:
        return [(str(sample.id), sample.epoch) for sample in self._loaded(False)]

    def samples(self, resolve: Resolve = False) -> list[EvalSample]:
        return sorted(self._loaded(resolve), key=sample_order)

    def sample(self, id: int | str, epoch: int, resolve: Resolve = False) -> EvalSample:
        for sample in self._loaded(resolve):
            if str(sample.id) == str(id) and sample.epoch == epoch:
                return sample
        raise self._missing(id, epoch)

    def summaries(self) -> list[EvalSampleSummary]:
        return [summarise(sample) for sample in self._loaded(False)]


def _json_header(store: LogStore, name: str, size: int, location: str) -> dict[str, Any]:
    """The fields of a ``.json`` log before its samples, from as little of the file as holds them."""
    wanted = _HEAD
    while True:
        text = store.read(name, 0, wanted).decode("utf-8", "ignore")
        found = top_level(text)
        if found is not None:
            return found[0]
        if wanted >= size:
            raise BadLogError(f"{location} is not an evaluation log: its JSON ends too early")
        wanted *= 4


def top_level(text: str) -> tuple[dict[str, Any], int] | None:
    """The keys and values of the object in ``text`` up to ``samples``, and where the value of that begins.

    ``None`` when the text ends before; the object's end when there are no samples.
    """
    decoder = json.JSONDecoder()
    found: dict[str, Any] = {}
    place = text.find("{") + 1
    try:
        while True:
            mark = _PROBE.match(text, place)
            if mark is None:
                return None
            if mark[1] == "}":
                return found, mark.end()
            if mark[1] == ",":
                place = mark.end()
                mark = _PROBE.match(text, place)
                if mark is None:
                    return None
            key, place = decoder.raw_decode(text, mark.start(1))
            mark = _PROBE.match(text, place)
            if mark is None or mark[1] != ":":
                return None
            if key in ("samples", "reductions"):
                return found, mark.end()
            value = _PROBE.match(text, mark.end())
            if value is None:
                return None
            found[key], place = decoder.raw_decode(text, value.start(1))
    except (ValueError, RecursionError):  # the end is missing, or it is nested too deeply
        return None

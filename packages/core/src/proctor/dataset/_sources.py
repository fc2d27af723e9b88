"""Datasets from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from proctor.contracts import UsageError
from proctor.dataset._dataset import Dataset
from proctor.dataset._fetch import fetch, is_url
from proctor.dataset._fields import FieldSpec, RecordToSample
from proctor.dataset._file import FileDataset
from proctor.dataset._paths import path_resolver
from proctor.dataset._records import CsvFile, JsonFile, JsonLinesFile, RecordFile
from proctor.dataset._store import FieldStore, SampleStore, SpoolStore

_LINES = (".jsonl", ".ndjson")
_DELIMITED = {".csv": ",", ".tsv": "\t"}


def csv_dataset(
    csv_file: str | os.PathLike[str],
    sample_fields: FieldSpec | RecordToSample | None = None,
    auto_id: bool = False,
    shuffle: bool | int = False,
    seed: int | None = None,
    shuffle_choices: bool | int | None = None,
    limit: int | None = None,
    dialect: str = "unix",
    encoding: str = "utf-8-sig",
    name: str | None = None,
    fieldnames: Sequence[str] | None = None,
    delimiter: str | None = None,
) -> Dataset:
    """A dataset from a CSV file.

    Args:
        csv_file: a path, relative to the working directory (a task file's own folder while it loads), or a URL.
        sample_fields: which column is what, or a function from a row (a dict of texts) to a sample or several; it is
            called once for each row, in order.
        auto_id: number the samples from 1, whatever ids there are.
        shuffle: shuffle the samples; an integer is the seed.
        seed: the seed of the shuffles that are asked for with ``True``.
        shuffle_choices: shuffle each sample's choices, and its target with them; an integer is the seed.
        limit: keep that many samples, after shuffling.
        dialect: a dialect of the ``csv`` module: ``unix``, ``excel``, ``excel-tab`` or a registered one.
        encoding: of the text.
        name: the dataset's name; the file's without its ending by default.
        fieldnames: the columns, for a file without a header.
        delimiter: what separates the cells, in place of the dialect's.

    Raises:
        UsageError: if the file can't be read, a row has too many or too few cells, or a column is missing;
            the message names the line.
    """

    def open_file(path: str) -> RecordFile:
        return CsvFile(path, encoding, dialect, fieldnames, delimiter)

    return _dataset(csv_file, open_file, sample_fields, auto_id, shuffle, seed, shuffle_choices, limit, name)


def json_dataset(
    json_file: str | os.PathLike[str],
    sample_fields: FieldSpec | RecordToSample | None = None,
    auto_id: bool = False,
    shuffle: bool | int = False,
    seed: int | None = None,
    shuffle_choices: bool | int | None = None,
    limit: int | None = None,
    encoding: str = "utf-8",
    name: str | None = None,
) -> Dataset:
    """A dataset from a JSON file: an array of objects, or one object a line (``.jsonl``).

    The arguments are those of ``csv_dataset``.

    Raises:
        UsageError: if the file can't be read, or a record is no JSON object or lacks a field; with the line.
    """

    def open_file(path: str) -> RecordFile:
        lines = os.path.splitext(path)[1].lower() in _LINES
        return JsonLinesFile(path, encoding) if lines else JsonFile(path, encoding)

    return _dataset(json_file, open_file, sample_fields, auto_id, shuffle, seed, shuffle_choices, limit, name)


def file_dataset(
    file: str | os.PathLike[str],
    sample_fields: FieldSpec | RecordToSample | None = None,
    auto_id: bool = False,
    shuffle: bool | int = False,
    seed: int | None = None,
    shuffle_choices: bool | int | None = None,
    limit: int | None = None,
    dialect: str = "unix",
    encoding: str = "utf-8-sig",
    name: str | None = None,
    fieldnames: Sequence[str] | None = None,
) -> Dataset:
    """A dataset from a file whose ending says what it is: ``.csv``, ``.tsv``, ``.json``, ``.jsonl``, ``.ndjson``.

    The arguments are those of ``csv_dataset``.

    Raises:
        UsageError: as ``csv_dataset`` and ``json_dataset`` do, and for another ending.
    """
    location = os.fspath(file)
    ending = os.path.splitext(location.partition("?")[0])[1].lower()
    common = (sample_fields, auto_id, shuffle, seed, shuffle_choices, limit)
    if ending in _DELIMITED:
        delimiter = _DELIMITED[ending] if ending != ".csv" else None
        return csv_dataset(file, *common, dialect, encoding, name, fieldnames, delimiter)
    if ending in (*_LINES, ".json"):
        return json_dataset(file, *common, encoding, name)
    known = ", ".join((*_DELIMITED, ".json", *_LINES))
    raise UsageError(f"{location}: no dataset reader for files that end in {ending!r}; there are readers for {known}")


def _dataset(
    location: str | os.PathLike[str],
    open_file: Callable[[str], RecordFile],
    sample_fields: FieldSpec | RecordToSample | None,
    auto_id: bool,
    shuffle: bool | int,
    seed: int | None,
    shuffle_choices: bool | int | None,
    limit: int | None,
    name: str | None,
) -> Dataset:
    order_seed = _seed("shuffle", shuffle, seed)
    choices_seed = _seed("shuffle_choices", shuffle_choices, None if _is_int(shuffle_choices) else seed)
    if limit is not None and limit < 1:
        raise UsageError(f"the limit of a dataset must be at least 1, not {limit}; leave it out for all samples")
    place = os.fspath(location)
    if place.lower().startswith("file://"):
        place = place[len("file://") :]
    path = fetch(place) if is_url(place) else os.path.abspath(os.path.expanduser(place))
    # Only a local file has neighbours that its samples can name.
    finish = path_resolver(None if is_url(place) else os.path.dirname(path))
    file = open_file(path)
    fields = FieldSpec() if sample_fields is None else sample_fields
    store: SampleStore = (
        FieldStore(file, fields, auto_id, finish)
        if isinstance(fields, FieldSpec)
        else SpoolStore(file, fields, auto_id, finish)
    )
    stem = os.path.splitext(os.path.basename(path))[0]
    dataset = FileDataset(store, name or stem, place if is_url(place) else path)
    if shuffle is not False:
        dataset.shuffle(order_seed)
    if shuffle_choices is not None and shuffle_choices is not False:
        dataset.shuffle_choices(choices_seed)
    if limit is not None:
        dataset.truncate(limit)
    return dataset


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _seed(option: str, value: bool | int | None, seed: int | None) -> int | None:
    if not _is_int(value):
        return seed
    if seed is not None:
        raise UsageError(f"give either {option}={value} or {option}=True with seed={seed}, not both")
    return value

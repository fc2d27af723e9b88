"""Which samples of a dataset are to be run."""

from __future__ import annotations

import difflib
import fnmatch
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice

from proctor.contracts import UsageError
from proctor.dataset._dataset import Dataset, SampleId
from proctor.dataset._ids import refuse_duplicates
from proctor.dataset._iterable import IterableDataset
from proctor.schema import Sample


class Selection:
    """The samples of a dataset that are to be run, each with its id, read when asked for.

    ``len()`` and indexing work when the dataset is a ``Dataset``; an ``IterableDataset`` can only be iterated, and then
    refuses a duplicate id when it meets it.
    """

    def __init__(self, dataset: Dataset | IterableDataset, picked: Sequence[int] | slice) -> None:
        self._dataset = dataset
        self._picked = picked

    @property
    def dataset(self) -> Dataset | IterableDataset:
        """What was selected from."""
        return self._dataset

    @property
    def total(self) -> int | None:
        """How many samples the dataset has, selected or not; ``None`` when that is not known."""
        return self._dataset.length if isinstance(self._dataset, IterableDataset) else len(self._dataset)

    @property
    def length(self) -> int | None:
        """How many samples are selected; ``None`` when that is not known."""
        if not isinstance(self._picked, slice):
            return len(self._picked)
        return None if self.total is None else len(range(*self._picked.indices(self.total)))

    def place(self, index: int) -> int:
        """Where in the dataset the sample at ``index`` of the selection stands."""
        if isinstance(self._picked, slice):
            raise TypeError("what is selected of an IterableDataset has no places")
        return self._picked[index]

    def __len__(self) -> int:
        if self.length is None:
            raise TypeError("the length of this dataset is not known until it has been read")
        return self.length

    def ids(self) -> Sequence[SampleId] | None:
        """The ids in run order; ``None`` when they are not known before they are read."""
        if isinstance(self._dataset, IterableDataset) or isinstance(self._picked, slice):
            return None
        ids = self._dataset.ids()
        if isinstance(self._picked, range):
            return ids[self._picked.start : self._picked.stop]
        return [ids[index] for index in self._picked]

    def __getitem__(self, index: int) -> Sample:
        if isinstance(self._dataset, IterableDataset) or isinstance(self._picked, slice):
            raise TypeError("an IterableDataset can't be indexed; iterate over it")
        return self._dataset.read(self._picked[index])

    def __iter__(self) -> Iterator[Sample]:
        if isinstance(self._dataset, IterableDataset) or isinstance(self._picked, slice):
            yield from self._stream()
        else:
            for index in self._picked:
                yield self._dataset.read(index)

    def _stream(self) -> Iterator[Sample]:
        assert isinstance(self._picked, slice)
        seen: set[int] = set()
        numbered = islice(enumerate(self._dataset, 1), self._picked.start or 0, self._picked.stop)
        number = 0
        for number, sample in numbered:
            id = number if sample.id is None else sample.id
            key = hash(str(id))
            if key in seen:
                raise UsageError(f"the dataset gives the sample id {id!r} twice (the second time as item {number})")
            seen.add(key)
            yield sample if sample.id is not None else sample.with_id(id)
        if not number:
            where = "" if not self._picked.start else f" from number {self._picked.start + 1} on"
            raise UsageError(f"the dataset gave no sample{where}: check what makes them, and --limit")


def select(
    dataset: Dataset | IterableDataset,
    limit: int | tuple[int, int] | Sequence[int] | None = None,
    sample_ids: SampleId | Sequence[SampleId] | None = None,
) -> Selection:
    """What is to be run of ``dataset``.

    Args:
        dataset: the dataset, shuffled already if it is to be.
        limit: the first so many samples, or those from ``start`` up to but not including ``end`` (from 0); with
            ``sample_ids`` it counts those that have these ids.
        sample_ids: these samples alone, in the dataset's order; ``*`` and ``?`` stand for any text or character.

    Raises:
        UsageError: for an empty dataset, a duplicate id, a limit or ids that leave nothing, or an id that is not there.
    """
    name = dataset.location or dataset.name or "the dataset"
    start, end = _range(limit)
    if isinstance(dataset, IterableDataset):
        if sample_ids is not None:
            raise UsageError(
                f"{name}: samples of an IterableDataset can't be chosen by id; use a limit, or MemoryDataset"
            )
        return Selection(dataset, slice(start, end))
    total = len(dataset)
    if total == 0:
        raise UsageError(f"{name} has no samples. Check the file, and any filter or limit that the task applies to it.")
    refuse_duplicates(dataset)
    picked = range(total) if sample_ids is None else _by_id(dataset, sample_ids, name)
    if start >= len(picked):
        has = f"{name} has {total} samples" if sample_ids is None else f"--sample-id names {len(picked)} of {name}"
        raise UsageError(f"the limit starts at sample {start + 1}, but {has}")
    return Selection(dataset, picked[start:end])


def _range(limit: int | tuple[int, int] | Sequence[int] | None) -> tuple[int, int | None]:
    if limit is None:
        return 0, None
    start, end = (0, limit) if isinstance(limit, int) else tuple(limit)
    if start < 0 or end <= start:
        shown = limit if isinstance(limit, int) else f"{start + 1}-{end}"
        raise UsageError(f"the limit {shown} leaves no sample: give a number from 1, or a range such as 10-20")
    return start, end


def _by_id(dataset: Dataset, sample_ids: SampleId | Sequence[SampleId], name: str) -> Sequence[int]:
    wanted = [sample_ids] if isinstance(sample_ids, (int, str)) else list(sample_ids)
    if not wanted:
        raise UsageError("--sample-id names no sample: give one id or several (3,7), or leave it out to run all")
    exact = {str(id) for id in wanted}
    patterns = [str(id) for id in wanted if any(char in str(id) for char in "*?[")]
    found: set[str] = set()
    picked = array("Q")
    for index, id in enumerate(dataset.ids()):
        text = str(id)
        if text in exact:
            found.add(text)
            picked.append(index)
        elif matching := [pattern for pattern in patterns if fnmatch.fnmatchcase(text, pattern)]:
            found.update(matching)
            picked.append(index)
    if lost := [str(id) for id in wanted if str(id) not in found]:
        raise UsageError(_lost_message(dataset, lost, name))
    return picked


def _lost_message(dataset: Dataset, lost: list[str], name: str) -> str:
    ids = [str(id) for id in islice(dataset.ids(), 100_000)]
    parts = []
    for id in lost[:10]:
        close = difflib.get_close_matches(id, ids, n=3, cutoff=0.6)
        parts.append(f"{id!r}" + (f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""))
    more = f" and {len(lost) - 10} more" if len(lost) > 10 else ""
    return f"{name} has no sample {', '.join(parts)}{more}. Its {len(dataset)} ids begin with {', '.join(ids[:5])}."

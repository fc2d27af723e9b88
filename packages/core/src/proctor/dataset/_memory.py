from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

from proctor.contracts import UsageError
from proctor.dataset._choices import permute_choices
from proctor.dataset._dataset import Dataset, SampleId, sample_input_length
from proctor.schema import Sample


class MemoryDataset(Dataset):
    """A dataset of samples that are in memory.

    Args:
        samples: the samples; they are shared, not copied.
        name: the name, for a log.
        location: where the data came from.
        shuffled: whether the samples were shuffled before.

    Raises:
        UsageError: if something else than a ``Sample`` is among them.
    """

    def __init__(
        self,
        samples: Iterable[Sample],
        name: str | None = None,
        location: str | None = None,
        shuffled: bool = False,
    ) -> None:
        self.samples: list[Sample] = list(samples)
        for position, sample in enumerate(self.samples):
            if not isinstance(sample, Sample):
                raise UsageError(
                    f"a dataset is made of samples, but item {position + 1} is a {type(sample).__name__}: write "
                    'Sample(input="...", target="...") for each, or read them from a file with csv_dataset("...") or '
                    'json_dataset("...")'
                )
        self._name = name
        self._location = location
        self._shuffled = shuffled
        # The places before any shuffle: what a sample without an id is called, wherever a shuffle put it.
        self._numbers = list(range(1, len(self.samples) + 1))

    @property
    def name(self) -> str | None:
        return self._name

    @property
    def location(self) -> str | None:
        return self._location

    @property
    def shuffled(self) -> bool:
        return self._shuffled

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice) -> Dataset: ...

    def __getitem__(self, index: int | slice) -> Sample | Dataset:
        if isinstance(index, slice):
            return MemoryDataset(self.samples[index], self._name, self._location, self._shuffled)
        return self.samples[index]

    def __len__(self) -> int:
        return len(self.samples)

    def ids(self) -> Sequence[SampleId]:
        return [self._id(index) for index in range(len(self.samples))]

    def _id(self, index: int) -> SampleId:
        id = self.samples[index].id
        return self._numbers[index] if id is None else id

    def read(self, index: int) -> Sample:
        sample = self.samples[index]
        # A copy: the same object may stand in other datasets, under another number.
        return sample if sample.id is not None else sample.with_id(self._numbers[index])

    def where(self, index: int) -> str:
        return f"sample {self._numbers[index]}"

    def shuffle(self, seed: int | None = None) -> None:
        order = list(range(len(self.samples)))
        shuffle_in_place(order, seed)
        self._reorder(order)
        self._shuffled = True

    def _reorder(self, order: list[int]) -> None:
        self.samples[:] = [self.samples[old] for old in order]
        self._numbers = [self._numbers[old] for old in order]

    def shuffle_choices(self, seed: int | None = None) -> None:
        rand = random.Random(seed)
        for index, sample in enumerate(self.samples):
            if sample.choices:
                order = list(range(len(sample.choices)))
                rand.shuffle(order)
                permute_choices(sample, order, f"{self._name or 'dataset'}, {self.where(index)}")

    def sort(self, reverse: bool = False, key: Callable[[Sample], Any] = sample_input_length) -> None:
        keys = [key(sample) for sample in self.samples]
        self._reorder(sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse))

    def filter(self, predicate: Callable[[Sample], bool], name: str | None = None) -> Dataset:
        picked = [sample for sample in self.samples if predicate(sample)]
        return MemoryDataset(picked, name or self._name, self._location, self._shuffled)


def shuffle_in_place(items: Any, seed: int | None) -> None:
    """Shuffle a mutable sequence; without a seed, ``random.seed()`` of the task's author applies."""
    if seed is None:
        random.shuffle(items)
    else:
        random.Random(seed).shuffle(items)

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Sequence
from typing import Any, overload

from proctor.dataset._choices import permute_choices
from proctor.dataset._dataset import Dataset, SampleId, sample_input_length
from proctor.dataset._ids import OrderedIds
from proctor.dataset._memory import shuffle_in_place
from proctor.dataset._store import SampleStore
from proctor.schema import Sample


class FileDataset(Dataset):
    """A dataset whose samples stay in their file until they are asked for.

    A *row* is a sample's place in the file, a *slot* its place in this dataset before any shuffle (the same unless the
    dataset was filtered), an *index* its place now.

    Args:
        store: the samples by row.
        name: the name, for a log.
        location: the path or URL.
        rows: the row of each slot; ``None``: all rows in order.
    """

    def __init__(
        self, store: SampleStore, name: str | None, location: str | None, rows: Sequence[int] | None = None
    ) -> None:
        self._store = store
        self._name = name
        self._location = location
        self._rows = rows
        self._order: Sequence[int] = range(len(store) if rows is None else len(rows))
        self._shuffled = False
        # What an author has seen is kept, by row: changes made to it count.
        self._kept: dict[int, Sample] = {}
        self._choice_orders: list[_ChoiceOrders] = []

    @property
    def name(self) -> str | None:
        return self._name

    @property
    def location(self) -> str | None:
        return self._location

    @property
    def shuffled(self) -> bool:
        return self._shuffled

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice) -> Dataset: ...

    def __getitem__(self, index: int | slice) -> Sample | Dataset:
        if isinstance(index, slice):
            return self._subset(self._order[index], self._name)
        row = self._row(self._order[index])
        if row not in self._kept:
            self._kept[row] = self._load(row)
        return self._kept[row]

    def _row(self, slot: int) -> int:
        return slot if self._rows is None else self._rows[slot]

    def _load(self, row: int) -> Sample:
        sample = self._store.read(row)
        for orders in self._choice_orders:
            orders.apply(sample, row, self._store.where(row))
        return sample

    def _peek(self, slot: int) -> Sample:
        row = self._row(slot)
        return self._kept.get(row) or self._load(row)

    def read(self, index: int) -> Sample:
        slot = self._order[index]
        sample = self._peek(slot)
        # A copy: an author's object may stand in another dataset too, under another number.
        return sample if sample.id is not None else sample.with_id(slot + 1)

    def ids(self) -> Sequence[SampleId]:
        ids = OrderedIds(self._order, self._rows, self._store.ids if self._store.ids.any_given else None)
        return [self._id(ids, index) for index in range(len(ids))] if self._kept else ids

    def _id(self, ids: OrderedIds, index: int) -> SampleId:
        # An author who saw a sample may have given it another id.
        seen = self._kept.get(self._row(self._order[index]))
        return ids[index] if seen is None or seen.id is None else seen.id

    def where(self, index: int) -> str:
        return f"line {self._store.lines[self._row(self._order[index])]}"

    def shuffle(self, seed: int | None = None) -> None:
        order = array("Q", self._order)
        shuffle_in_place(order, seed)
        self._order = order
        self._shuffled = True

    def shuffle_choices(self, seed: int | None = None) -> None:
        rows = [self._row(slot) for slot in self._order]
        orders = _ChoiceOrders(len(self._store), rows, self._choice_count, random.Random(seed))
        for row, sample in self._kept.items():
            orders.apply(sample, row, self._store.where(row))
        self._choice_orders.append(orders)
        # Tried at once, so that a target that names no choice is met before the first request.
        for row in rows:
            if row not in self._kept:
                self._load(row)

    def _choice_count(self, row: int) -> int:
        kept = self._kept.get(row)
        return self._store.choice_counts[row] if kept is None else len(kept.choices or ())

    def sort(self, reverse: bool = False, key: Callable[[Sample], Any] = sample_input_length) -> None:
        keys = {slot: key(self._peek(slot)) for slot in self._order}
        self._order = array("Q", sorted(self._order, key=keys.__getitem__, reverse=reverse))

    def filter(self, predicate: Callable[[Sample], bool], name: str | None = None) -> Dataset:
        return self._subset([slot for slot in self._order if predicate(self._peek(slot))], name or self._name)

    def _subset(self, slots: Sequence[int], name: str | None) -> FileDataset:
        subset = FileDataset(self._store, name, self._location, array("Q", map(self._row, slots)))
        subset._shuffled = self._shuffled
        rows = set(subset._rows or ()) if self._kept else set()
        subset._kept = {row: sample for row, sample in self._kept.items() if row in rows}
        subset._choice_orders = list(self._choice_orders)
        return subset

    def truncate(self, limit: int) -> None:
        """Keep the first ``limit`` samples of the current order."""
        self._order = self._order[:limit]


class _ChoiceOrders:
    """The order in which one shuffle put the choices of each row: two bytes a choice."""

    def __init__(self, total: int, rows: Sequence[int], count: Callable[[int], int], rand: random.Random) -> None:
        self._starts: array[int] = array("Q", bytes(8 * total))
        self._orders: array[int] = array("H")
        for row in rows:
            order = list(range(count(row)))
            if order:
                rand.shuffle(order)
                self._starts[row] = len(self._orders)
                self._orders.extend(order)

    def apply(self, sample: Sample, row: int, where: str) -> None:
        """Put the choices of the sample in ``row`` in their order."""
        start, count = self._starts[row], len(sample.choices or ())
        if count:
            permute_choices(sample, self._orders[start : start + count], where)

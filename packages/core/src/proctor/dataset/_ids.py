"""Sample ids, held compactly."""

from __future__ import annotations

import itertools
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import overload

from proctor.contracts import UsageError
from proctor.dataset._dataset import Dataset, SampleId

_SHOWN = 10


class GivenIds(Sequence["SampleId | None"]):
    """The ids that a file gives, ``None`` where it gives none: 9 bytes each, plus the text of the id.

    A million ids as Python strings would take 60 MB and more.
    """

    __slots__ = ("_ends", "_kinds", "_text")

    def __init__(self, ids: Iterable[SampleId | None] = ()) -> None:
        self._kinds = bytearray()
        self._ends: array[int] = array("Q")
        self._text = bytearray()
        for id in ids:
            self.append(id)

    def append(self, id: SampleId | None) -> None:
        """Add an id at the end."""
        if id is not None:
            self._text += str(id).encode("utf-8", "surrogatepass")
        self._kinds.append(0 if id is None else 1 if isinstance(id, int) else 2)
        self._ends.append(len(self._text))

    @property
    def any_given(self) -> bool:
        """Whether there is any id at all."""
        return any(self._kinds)

    @overload
    def __getitem__(self, index: int) -> SampleId | None: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[SampleId | None]: ...

    def __getitem__(self, index: int | slice) -> SampleId | Sequence[SampleId | None] | None:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        kind = self._kinds[index]
        if kind == 0:
            return None
        start = self._ends[index - 1] if index else 0
        text = self._text[start : self._ends[index]].decode("utf-8", "surrogatepass")
        return int(text) if kind == 1 else text

    def __len__(self) -> int:
        return len(self._kinds)


class OrderedIds(Sequence[SampleId]):
    """The ids in the order of a dataset: the given one, else the number of the slot.

    Args:
        order: the slots in the current order.
        rows: where a slot stands in ``given`` (``None``: at the same place).
        given: the ids of the file; ``None`` when it gives none.
    """

    __slots__ = ("_given", "_order", "_rows")

    def __init__(self, order: Sequence[int], rows: Sequence[int] | None, given: GivenIds | None) -> None:
        self._order = order
        self._rows = rows
        self._given = given

    @overload
    def __getitem__(self, index: int) -> SampleId: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[SampleId]: ...

    def __getitem__(self, index: int | slice) -> SampleId | Sequence[SampleId]:
        if isinstance(index, slice):
            return OrderedIds(self._order[index], self._rows, self._given)
        slot = self._order[index]
        if self._given is not None:
            given = self._given[slot if self._rows is None else self._rows[slot]]
            if given is not None:
                return given
        return slot + 1

    def __len__(self) -> int:
        return len(self._order)

    @property
    def numbered(self) -> bool:
        """Whether all ids are numbers of slots, hence unique."""
        return self._given is None


def refuse_duplicates(dataset: Dataset) -> None:
    """Check that no id occurs twice; ``1`` and ``"1"`` are one id, since they are one name in a log.

    Raises:
        UsageError: naming the ids and where they stand.
    """
    ids = dataset.ids()
    if isinstance(ids, OrderedIds) and ids.numbered:
        return
    # Hashes first: a dict of a million strings takes a hundred megabytes, and nearly always there is no duplicate.
    hashes = sorted(hash(str(id)) for id in ids)
    suspects = {one for one, other in itertools.pairwise(hashes) if one == other}
    del hashes
    if not suspects:
        return
    places: dict[str, list[int]] = defaultdict(list)
    for index, id in enumerate(ids):
        if hash(str(id)) in suspects:
            places[str(id)].append(index)
    twice = {id: found for id, found in places.items() if len(found) > 1}
    if twice:
        raise UsageError(_duplicates_message(dataset, ids, twice))


def _duplicates_message(dataset: Dataset, ids: Sequence[SampleId], twice: dict[str, list[int]]) -> str:
    lines = []
    for found in list(twice.values())[:_SHOWN]:
        spelt = " and ".join(dict.fromkeys(repr(ids[index]) for index in found))
        where = ", ".join(dataset.where(index) for index in found[:5]) + (", ..." if len(found) > 5 else "")
        lines.append(f"{spelt} ({len(found)} times: {where})")
    more = f"; and {len(twice) - _SHOWN} more" if len(twice) > _SHOWN else ""
    name = dataset.location or dataset.name or "the dataset"
    return (
        f"{name}: sample ids must be unique (1 and '1' are the same), but these are not: {'; '.join(lines)}{more}. "
        f"Give each sample its own id, or use auto_id=True to number them."
    )

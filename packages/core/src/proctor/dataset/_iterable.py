from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from proctor.contracts import UsageError
from proctor.schema import Sample


class IterableDataset:
    """Samples from a generator, made one after the other as they are wanted, in its order.

    It can't be indexed or shuffled, and a duplicate id is found only when it is met.

    Args:
        make: called for each pass; returns the samples anew.
        length: how many there will be, if that is known.
        name: the name, for a log.
        location: where the data come from.
    """

    def __init__(
        self,
        make: Callable[[], Iterable[Sample]],
        length: int | None = None,
        name: str | None = None,
        location: str | None = None,
    ) -> None:
        if not callable(make):
            raise UsageError(
                "IterableDataset takes a function that returns samples, since they are read again by each run: "
                "write IterableDataset(lambda: samples())"
            )
        self._make = make
        self._length = length
        self.name = name
        self.location = location
        self.shuffled = False

    @property
    def length(self) -> int | None:
        """How many samples there will be; ``None`` when that is not known."""
        return self._length

    def __iter__(self) -> Iterator[Sample]:
        for position, sample in enumerate(self._make(), 1):
            if not isinstance(sample, Sample):
                raise UsageError(f"item {position} of the dataset is a {type(sample).__name__}, not a Sample")
            yield sample

    def __len__(self) -> int:
        if self._length is None:
            raise TypeError("the length of this dataset is not known until it has been read")
        return self._length

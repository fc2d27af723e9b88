"""What every dataset offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, overload

from proctor.schema import Sample

SampleId: TypeAlias = int | str


def sample_input_length(sample: Sample) -> int:
    """The length of a sample's input in characters (of all its messages, for a conversation)."""
    if isinstance(sample.input, str):
        return len(sample.input)
    return sum(len(message.text) for message in sample.input)


class Dataset(Sequence[Sample], ABC):
    """A sequence of samples that may be read lazily.

    ``dataset[i]`` is for authors: the sample as the data gave it (perhaps without an id), the same object each time, so
    that a change made to it stays. ``read(i)`` is for whoever runs the samples: always with an id, and not remembered,
    so that a million samples cost no memory.
    """

    @property
    @abstractmethod
    def name(self) -> str | None:
        """The name, for a log."""

    @property
    @abstractmethod
    def location(self) -> str | None:
        """Where the data came from: a path or a URL."""

    @property
    @abstractmethod
    def shuffled(self) -> bool:
        """Whether the order was shuffled."""

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice) -> Dataset: ...

    @abstractmethod
    def __getitem__(self, index: int | slice) -> Sample | Dataset:
        """A sample, or a dataset of those that the slice picks (samples without an id are then numbered anew)."""

    @abstractmethod
    def ids(self) -> Sequence[SampleId]:
        """The ids in the current order: as given, else the 1-based position before any shuffle."""

    @abstractmethod
    def read(self, index: int) -> Sample:
        """The sample at ``index`` with its id; changes made to the object need not stay."""

    @abstractmethod
    def where(self, index: int) -> str:
        """Where the sample at ``index`` stands in its source (such as ``line 12``), for messages."""

    @abstractmethod
    def shuffle(self, seed: int | None = None) -> None:
        """Shuffle the order in place; the same seed gives the same order on every machine."""

    @abstractmethod
    def shuffle_choices(self, seed: int | None = None) -> None:
        """Shuffle each sample's choices in place and move its target letters with them.

        Raises:
            UsageError: if a target is not the letter (or number) of one of its sample's choices.
        """

    @abstractmethod
    def sort(self, reverse: bool = False, key: Callable[[Sample], Any] = sample_input_length) -> None:
        """Sort in place, by the length of the input unless ``key`` says otherwise."""

    @abstractmethod
    def filter(self, predicate: Callable[[Sample], bool], name: str | None = None) -> Dataset:
        """A dataset of the samples for which ``predicate`` holds (those without an id are numbered anew)."""

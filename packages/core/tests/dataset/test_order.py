from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.contracts import UsageError
from proctor.dataset import Dataset, MemoryDataset, Sample, json_dataset, select

Make = Callable[[list[Sample]], Dataset]


@pytest.fixture(params=["memory", "file", "function"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Makes a dataset of given samples, of each kind."""

    names = (tmp_path / f"made-{number}.jsonl" for number in itertools.count())

    def build(samples: list[Sample]) -> Dataset:
        if request.param == "memory":
            return MemoryDataset(samples, name="made", location="here")
        path = next(names)
        path.write_text("".join(json.dumps(sample.model_dump(exclude_none=True)) + "\n" for sample in samples))
        return json_dataset(path, Sample.model_validate if request.param == "function" else None)

    return build


def numbered(count: int) -> list[Sample]:
    return [Sample(input=f"q{number}") for number in range(count)]


@pytest.mark.parametrize("seed", [0, 7, 42])
def test_a_seed_gives_the_order_that_it_gives_everywhere(make: Make, seed: int) -> None:
    dataset = make(numbered(10))
    dataset.shuffle(seed)
    expected = list(range(10))
    random.Random(seed).shuffle(expected)
    assert [sample.input for sample in dataset] == [f"q{number}" for number in expected]
    assert list(dataset.ids()) == [number + 1 for number in expected]
    assert dataset.shuffled


def test_without_a_seed_the_authors_seed_counts(make: Make) -> None:
    orders = []
    for _ in range(2):
        random.seed(3)
        dataset = make(numbered(10))
        dataset.shuffle()
        orders.append(list(dataset.ids()))
    assert orders[0] == orders[1] != list(range(1, 11))


@pytest.mark.parametrize("seed", [1, 42])
def test_choices_are_shuffled_one_sample_after_the_other_and_targets_follow(make: Make, seed: int) -> None:
    targets: list[str | list[str]] = ["B", ["A", "D"], "c", "A"]
    choices = ["w", "x", "y", "z"]
    samples = [Sample(input="q", choices=list(choices), target=target) for target in targets]
    dataset = make([*samples, Sample(input="none", target="A")])
    dataset.shuffle_choices(seed)
    rand = random.Random(seed)
    for index, target in enumerate(targets):
        order = list(choices)
        rand.shuffle(order)
        sample = dataset.read(index)
        assert sample.choices == order
        names = [target] if isinstance(target, str) else target
        moved = [sample.target] if isinstance(sample.target, str) else sample.target
        before = ["wxyz"["ABCD".index(name.upper())] for name in names]
        assert [order["ABCD".index(name)] for name in moved] == before
    assert (dataset[4].choices, dataset[4].target) == (None, "A")
    assert dataset[0].choices == dataset.read(0).choices


def test_choices_may_be_shuffled_before_and_after_a_look_and_twice(make: Make) -> None:
    def build() -> Dataset:
        return make([Sample(input="q", choices=["a", "b", "c"], target="B") for _ in range(5)])

    looked, unseen = build(), build()
    _ = list(looked)
    for dataset in (looked, unseen):
        dataset.shuffle(1)
        dataset.shuffle_choices(2)
        dataset.shuffle_choices(3)
    subset = unseen.filter(lambda sample: True)[1:4]
    assert [(sample.choices, sample.target) for sample in looked] == [(one.choices, one.target) for one in unseen]
    assert [(sample.choices, sample.target) for sample in looked][1:4] == [(one.choices, one.target) for one in subset]


def test_more_than_26_choices_have_numbers_for_names(make: Make) -> None:
    names = [str(number) for number in range(30)]
    dataset = make([Sample(input="q", choices=names, target="4")])
    dataset.shuffle_choices(5)
    sample = dataset[0]
    assert sample.choices is not None and isinstance(sample.target, str)
    place = ord(sample.target) - 65 if sample.target.isalpha() else 25 + int(sample.target)
    assert sample.choices[place] == "29"


@pytest.mark.parametrize("target", ["AC", "Z", "", "A,B"])
def test_a_target_that_names_no_choice_stops_the_shuffle(make: Make, target: str) -> None:
    dataset = make([Sample(input="q", choices=["a", "b"], target=target)])
    with pytest.raises(UsageError, match="a letter from A to B"):
        dataset.shuffle_choices(1)


def test_sorting_filtering_and_slicing(make: Make) -> None:
    dataset = make([Sample(input=text) for text in ["ccc", "a", "bb"]])
    dataset.sort()
    assert [sample.input for sample in dataset] == ["a", "bb", "ccc"]
    assert list(dataset.ids()) == [2, 3, 1]
    dataset.sort(reverse=True, key=lambda sample: str(sample.input))
    assert [sample.input for sample in dataset] == ["ccc", "bb", "a"]
    some = dataset.filter(lambda sample: len(str(sample.input)) < 3, name="short")
    assert (some.name, [sample.input for sample in some], list(some.ids())) == ("short", ["bb", "a"], [1, 2])
    assert [sample.input for sample in dataset[1:]] == ["bb", "a"]
    assert list(dataset[1:].ids()) == [1, 2]
    assert dataset.filter(lambda sample: False).name == dataset.name


def test_the_reader_shuffles_before_it_limits(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(
        "".join(
            json.dumps({"input": f"q{number}", "choices": ["a", "b"], "target": "A"}) + "\n" for number in range(10)
        )
    )
    expected = list(range(10))
    random.Random(42).shuffle(expected)
    for dataset in (json_dataset(path, shuffle=42, limit=3), json_dataset(path, shuffle=True, seed=42, limit=3)):
        assert [sample.input for sample in dataset] == [f"q{number}" for number in expected[:3]]
        assert list(dataset.ids()) == [number + 1 for number in expected[:3]]
    again = [json_dataset(path, shuffle_choices=True, seed=4), json_dataset(path, shuffle_choices=4)]
    assert [sample.choices for sample in again[0]] == [sample.choices for sample in again[1]]
    assert len(select(json_dataset(path, limit=100))) == 10

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.contracts import UsageError
from proctor.dataset import IterableDataset, MemoryDataset, Sample, Selection, json_dataset, select
from proctor.dataset._ids import GivenIds  # how ids are packed shows only in what comes out

# What these tests are about shows without targets, of which a reader warns (see test_csv.py).
pytestmark = pytest.mark.filterwarnings("ignore:.*the samples have no target:UserWarning")


def dataset(*ids: Any) -> MemoryDataset:
    return MemoryDataset([Sample(input=f"q{index}", id=id) for index, id in enumerate(ids)], name="mine")


def ids(selection: Selection) -> list[Any]:
    found = selection.ids()
    assert found is not None
    assert [sample.id for sample in selection] == list(found)
    assert [selection[index].id for index in range(len(selection))] == list(found)
    return list(found)


def test_all_samples_are_selected_with_their_ids() -> None:
    assert ids(select(dataset("a", None, 7))) == ["a", 2, 7]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(2, [1, 2]), (100, [1, 2, 3, 4, 5]), ((1, 3), [2, 3]), ([4, 9], [5]), (None, [1, 2, 3, 4, 5])],
)
def test_a_limit_is_a_number_or_a_range(limit: Any, expected: list[int]) -> None:
    chosen = select(dataset(*[None] * 5), limit)
    assert ids(chosen) == expected
    assert chosen.total == 5


@pytest.mark.parametrize(
    ("limit", "says"), [(0, "limit 0 leaves no"), (-1, "limit -1"), ((3, 3), "limit 4-3"), ((7, 9), "has 5")]
)
def test_a_limit_that_leaves_nothing_is_refused(limit: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        select(dataset(*[None] * 5), limit)


def test_a_limit_counts_the_samples_that_ids_have_chosen() -> None:
    many = dataset("b-1", "a-1", 3, "a-2", "a-3")
    assert ids(select(many, 2, ["a-*"])) == ["a-1", "a-2"]
    assert ids(select(many, (1, 9), ["a-*"])) == ["a-2", "a-3"]
    with pytest.raises(UsageError, match="starts at sample 4, but --sample-id names 3 of mine"):
        select(many, (3, 9), ["a-*"])


def test_a_selection_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="--sample-id names no sample"):
        select(dataset("a"), sample_ids=[])
    with pytest.raises(UsageError, match="gave no sample"):
        list(select(IterableDataset(lambda: iter(()), length=0)))


def test_samples_are_chosen_by_id_in_the_order_of_the_dataset() -> None:
    many = dataset("b-1", "a-1", 3, "a-2")
    assert ids(select(many, sample_ids=["a-2", "b-1"])) == ["b-1", "a-2"]
    assert ids(select(many, sample_ids="3")) == [3]
    assert ids(select(many, sample_ids=3)) == [3]
    assert ids(select(many, sample_ids=["a-*", 3])) == ["a-1", 3, "a-2"]


def test_an_id_that_is_not_there_is_told_with_near_matches() -> None:
    with pytest.raises(
        UsageError, match=r"has no sample 'question-11' \(did you mean .*'question-1'.*\), '99'\. Its 12 ids"
    ):
        select(dataset(*[f"question-{number}" for number in range(11)], "x"), sample_ids=["question-11", 99])


@pytest.mark.parametrize("twice", [["a", "b", "a"], [1, "1"], [None, 3, 1], ["2", None]])
def test_an_id_that_occurs_twice_is_refused(twice: list[Any]) -> None:
    with pytest.raises(UsageError, match="sample ids must be unique"):
        select(dataset(*twice))


def test_duplicates_are_listed_with_their_places(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps({"input": "q", "id": id}) + "\n" for id in ["x", 1, "1", "y", "x", "x"]))
    with pytest.raises(UsageError) as error:
        select(json_dataset(path))
    assert "'x' (3 times: line 1, line 5, line 6)" in str(error.value)
    assert "1 and '1' (2 times: line 2, line 3)" in str(error.value)
    assert "'y'" not in str(error.value)


def test_an_empty_dataset_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text("")
    with pytest.raises(UsageError, match=r"empty\.jsonl has no samples"):
        select(json_dataset(path))
    with pytest.raises(UsageError, match="mine has no samples"):
        select(dataset())


def test_a_generator_can_not_be_searched_for_ids() -> None:
    with pytest.raises(UsageError, match="can't be chosen by id"):
        select(IterableDataset(lambda: [Sample(input="q")]), sample_ids="1")


given_ids = st.none() | st.integers() | st.text()


@given(st.lists(given_ids, max_size=20))
def test_packed_ids_come_out_as_they_went_in(many: list[Any]) -> None:
    packed = GivenIds(many)
    assert list(packed) == many
    assert [type(one) for one in packed[::-1]] == [type(one) for one in reversed(many)]
    assert packed.any_given == any(one is not None for one in many)


@given(st.lists(st.integers(0, 5) | st.sampled_from("012345"), max_size=8))
def test_exactly_the_datasets_with_two_equal_names_are_refused(many: list[Any]) -> None:
    names = [str(one) for one in many]
    if not many:
        return
    if len(set(names)) == len(names):
        assert ids(select(dataset(*many))) == many
    else:
        with pytest.raises(UsageError, match="must be unique"):
            select(dataset(*many))

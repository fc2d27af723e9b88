from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.contracts import UsageError
from proctor.dataset import Dataset, IterableDataset, MemoryDataset, Sample, csv_dataset, json_dataset, select

# What these tests are about shows without targets, of which a reader warns (see test_csv.py).
pytestmark = pytest.mark.filterwarnings("ignore:.*the samples have no target:UserWarning")


@pytest.fixture
def numbered(tmp_path: Path) -> Path:
    path = tmp_path / "numbered.jsonl"
    path.write_text("".join(json.dumps({"input": f"q{number}"}) + "\n" for number in range(10)))
    return path


def test_what_an_author_changes_stays_changed(numbered: Path) -> None:
    dataset = json_dataset(numbered)
    for sample in dataset:
        sample.metadata = {"seen": sample.input}
    dataset[3].id = "third"
    assert dataset[3] is dataset[3]
    assert dataset.read(5).metadata == {"seen": "q5"}
    assert list(dataset.ids())[2:5] == [3, "third", 5]
    assert dataset.filter(lambda sample: sample.id == "third")[0] is dataset[3]
    assert dataset[2:5][1] is dataset[3]


def test_what_a_run_reads_has_an_id_and_is_not_kept(numbered: Path) -> None:
    dataset = json_dataset(numbered)
    assert dataset.read(4).id == 5
    assert dataset.read(4) is not dataset.read(4)
    assert dataset[4].id is None


def test_samples_without_ids_join_other_datasets_without_clashes(numbered: Path) -> None:
    both = MemoryDataset([*json_dataset(numbered)[:2], *json_dataset(numbered)[5:7]])
    assert [sample.id for sample in select(both)] == [1, 2, 3, 4]


@pytest.mark.slow
def test_many_rows_take_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    rows = 20_000
    with path.open("w") as file:
        file.write("input,target,id\n")
        for number in range(rows):
            file.write(f'"What is {number} + 2, and why? {"x" * 200}",{number + 2},sample-{number}\n')
    tracemalloc.start()
    try:
        dataset = select(csv_dataset(path, shuffle=True, seed=1))
        kept = tracemalloc.get_traced_memory()[0]
        for _ in dataset:
            pass
        grown = tracemalloc.get_traced_memory()[0] - kept
    finally:
        tracemalloc.stop()
    assert kept / rows < 80
    assert grown / rows < 8


def test_a_file_that_changes_meanwhile_is_an_error_and_a_replaced_one_is_not(numbered: Path, tmp_path: Path) -> None:
    dataset = json_dataset(numbered)
    other = tmp_path / "other.jsonl"
    other.write_text('{"input": "new"}\n')
    other.replace(numbered)
    assert dataset.read(9).input == "q9"
    again = json_dataset(numbered)
    with numbered.open("a") as file:
        file.write('{"input": "more"}\n')
    with pytest.raises(UsageError, match="was changed while it was being read"):
        again.read(0)


def test_the_working_directory_may_change_after_loading(numbered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(numbered.parent)
    dataset = json_dataset("numbered.jsonl")
    monkeypatch.chdir("/")
    assert (dataset.location, dataset.name) == (str(numbered), "numbered")
    assert dataset.read(0).input == "q0"


def test_auto_id_numbers_samples_whatever_ids_they_have(tmp_path: Path) -> None:
    path = tmp_path / "ids.jsonl"
    path.write_text('{"input": "a", "id": "x"}\n{"input": "b", "id": "x"}\n')
    assert [sample.id for sample in json_dataset(path, auto_id=True)] == [1, 2]
    made = json_dataset(path, lambda record: [Sample(input="1", id="own"), Sample(input="2")], auto_id=True)
    assert [sample.id for sample in made] == [1, 2, 3, 4]
    assert [sample.id for sample in select(json_dataset(path, auto_id=True, shuffle=1))] in ([1, 2], [2, 1])


def test_a_generator_is_read_as_it_is_wanted() -> None:
    made: list[int] = []

    def samples() -> Iterator[Sample]:
        for number in range(1_000_000):
            made.append(number)
            yield Sample(input=str(number), id=None if number % 2 else f"even-{number}")

    chosen = select(IterableDataset(samples), limit=(2, 5))
    assert (chosen.length, chosen.total, chosen.ids()) == (None, None, None)
    assert [sample.id for sample in chosen] == ["even-2", 4, "even-4"]
    assert made == [0, 1, 2, 3, 4]
    with pytest.raises(TypeError, match="not known"):
        len(chosen)


def test_a_generator_may_know_its_length() -> None:
    def samples() -> list[Sample]:
        return [Sample(input="x")] * 3

    assert len(IterableDataset(samples, length=3)) == 3
    assert (len(select(IterableDataset(samples, length=3), limit=2)), select(IterableDataset(samples, 3)).total) == (
        2,
        3,
    )


def test_a_generator_that_gives_an_id_twice_fails_when_it_does() -> None:
    dataset = IterableDataset(lambda: [Sample(input="a", id="2"), Sample(input="b")])
    with pytest.raises(UsageError, match="sample id 2 twice"):
        list(select(dataset))


def test_what_is_no_generator_of_samples_is_refused() -> None:
    with pytest.raises(UsageError, match="takes a function"):
        IterableDataset([Sample(input="x")])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="item 1 of the dataset is a str"):
        list(IterableDataset(lambda: ["x"]))  # type: ignore[list-item,return-value]
    with pytest.raises(UsageError, match=r"item 2 is a str: write Sample\(.*csv_dataset"):
        MemoryDataset([Sample(input="x"), "y"])  # type: ignore[list-item]


def test_datasets_are_sequences(numbered: Path) -> None:
    for dataset in (json_dataset(numbered), MemoryDataset([Sample(input=f"q{number}") for number in range(10)])):
        assert isinstance(dataset, Dataset)
        assert len(dataset) == 10 and len(dataset[2:4]) == 2
        assert dataset[-1].input == "q9"
        with pytest.raises(IndexError):
            dataset[10]

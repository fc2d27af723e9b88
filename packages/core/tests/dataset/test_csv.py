from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.contracts import UsageError
from proctor.dataset import Dataset, FieldSpec, csv_dataset, file_dataset

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(text: str, name: str = "data.csv", encoding: str = "utf-8") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return make


def pairs(dataset: Dataset) -> list[tuple[object, object]]:
    return [(sample.input, sample.target) for sample in dataset]


def test_columns_of_the_usual_names_are_found(write: Write) -> None:
    path = write(
        "input,target,id,choices,metadata,sandbox,files,setup\n"
        'q1,B,s1,"x, y","{""k"": 1}","[""docker"", ""c.yaml""]","{""a.txt"": ""text""}",make\n'
    )
    (sample,) = csv_dataset(path)
    assert (sample.input, sample.target, sample.id, sample.choices) == ("q1", "B", "s1", ["x", "y"])
    assert (sample.metadata, sample.files, sample.setup) == ({"k": 1}, {"a.txt": "text"}, "make")
    assert sample.sandbox is not None and (sample.sandbox.type, sample.sandbox.config) == ("docker", "c.yaml")


def test_empty_cells_are_missing_values(write: Write) -> None:
    (sample,) = csv_dataset(write("input,target,id,choices,metadata,files,sandbox,setup\nq,,,,,,,\n"))
    assert (sample.target, sample.id, sample.choices, sample.metadata) == ("", None, None, None)
    assert (sample.files, sample.sandbox, sample.setup) == (None, None, None)


@pytest.mark.parametrize("text", ["input,target\nq,a\n", "input,target\n\nq,a\n\n", "input,target\r\nq,a\r\n"])
def test_line_ends_and_empty_lines_do_not_matter(write: Write, text: str) -> None:
    assert pairs(csv_dataset(write(text))) == [("q", "a")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252"])
def test_encodings_and_byte_order_marks(write: Write, encoding: str) -> None:
    path = write('input,target\n"é\nx",ü\nß,ö\n', encoding=encoding)
    given = "utf-8-sig" if encoding.startswith("utf-8") else encoding
    assert pairs(csv_dataset(path, encoding=given)) == [("é\nx", "ü"), ("ß", "ö")]


def test_the_line_ends_of_old_macs(write: Write) -> None:
    assert pairs(csv_dataset(write("input,target\rq,a\rr,b"))) == [("q", "a"), ("r", "b")]


def test_dialects_delimiters_and_headerless_files(write: Write) -> None:
    tabbed = write("input\ttarget\nq\ta,b\n", "data.tsv")
    assert pairs(csv_dataset(tabbed, dialect="excel-tab")) == [("q", "a,b")]
    assert pairs(csv_dataset(tabbed, delimiter="\t")) == [("q", "a,b")]
    assert pairs(file_dataset(tabbed)) == [("q", "a,b")]
    assert pairs(csv_dataset(write("q,a\n"), fieldnames=["input", "target"])) == [("q", "a")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("input,target\nq,a\nr,b,zzz\n", "line 3: the row has 3 fields, the header has 2. Unexpected: ['zzz']"),
        ('input,target\n"q\nx",a\nr\n', "line 4: the row has 1 field, the header has 2. No value for: 'target'"),
        ("input,input\nq,a\n", "line 1: the header names 'input' twice"),
        ("question,target\nq,a\n", "line 2: there is no field 'input'"),
        ("inputs,target\nq,a\n", "Did you mean 'inputs'?"),
        ("input,target\n,a\n", "line 2: the input (field 'input') is empty"),
        ("input,metadata\nq,{\n", "line 2: the field 'metadata' must be a JSON object"),
        ("input,Target\nq,a\n", "there is no field 'target', but there is 'Target'"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(write: Write, text: str, says: str) -> None:
    path = write(text)
    with pytest.raises(UsageError) as error:
        csv_dataset(path)
    assert str(path) in str(error.value)
    assert says in str(error.value)


@pytest.mark.parametrize("spec", [None, FieldSpec(input="input", id="answer")])
def test_a_file_without_targets_is_told_of_once_with_its_fields(write: Write, spec: FieldSpec | None) -> None:
    path = write("input,answer\nq,a\nr,b\n")
    with pytest.warns(UserWarning, match=r"no field 'target'\. Fields: 'input', 'answer'\. Name the one") as told:
        dataset = csv_dataset(path, spec)
    assert [sample.target for sample in dataset] == ["", ""]
    assert len(told) == 1


def test_an_author_can_say_that_there_are_no_targets(write: Write) -> None:
    (sample,) = csv_dataset(write("input,target\nq,a\n"), FieldSpec(target=None))
    assert sample.target == ""


def test_a_misspelt_field_of_the_author_is_refused(write: Write) -> None:
    path = write("question,answer,topic\nq,a,law\n")
    with pytest.raises(UsageError, match=r"no field 'anwser'\. Did you mean 'answer'"):
        csv_dataset(path, FieldSpec(input="question", target="anwser"))
    with pytest.raises(UsageError, match=r"no field 'topics'\. Did you mean 'topic'"):
        csv_dataset(path, FieldSpec(input="question", target="answer", metadata=["topics"]))
    (sample,) = csv_dataset(path, FieldSpec(input="question", target="answer", metadata=["topic"]))
    assert (sample.target, sample.metadata) == ("a", {"topic": "law"})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"dialect": "exel"}, "no CSV dialect 'exel'; there are"),
        ({"encoding": "utf-9"}, "no text encoding 'utf-9'"),
        ({"limit": 0}, "must be at least 1, not 0"),
        ({"shuffle": 3, "seed": 4}, "either shuffle=3 or shuffle=True with seed=4"),
    ],
)
def test_wrong_arguments_are_refused(write: Write, options: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        csv_dataset(write("input,target\nq,a\n"), **options)  # type: ignore[arg-type]


def test_bytes_that_are_no_text_are_told_with_their_line(write: Write, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(b"input,target\nq,a\n\xff\xfe,b\n")
    with pytest.raises(UsageError, match=r"line 3: this is not utf-8 text \(byte 0xff\)"):
        csv_dataset(path)


def test_bytes_that_are_no_utf_16_are_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(b"\xff\xfei\0n")
    with pytest.raises(UsageError, match="this is not utf-16 text"):
        csv_dataset(path, encoding="utf-16")


@pytest.mark.parametrize("place", ["missing.csv", "."])
def test_what_can_not_be_read_is_told(tmp_path: Path, place: str) -> None:
    with pytest.raises(UsageError, match=r"can't be read|is a directory"):
        csv_dataset(tmp_path / place)


def test_an_unknown_ending_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"end in '\.txt'; there are readers for \.csv, \.tsv, \.json"):
        file_dataset(tmp_path / "data.txt")


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\ufeff"), min_size=1, max_size=20)


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=10))
def test_every_row_is_read_again_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, dialect="unix")
    writer.writerow(["input", "target"])
    writer.writerows(rows)
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    path.write_text(text.getvalue(), "utf-8", newline="")
    dataset = csv_dataset(path, shuffle=True, seed=1)
    assert sorted((str(sample.input), str(sample.target)) for sample in dataset) == sorted(rows)

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from proctor.contracts import UsageError
from proctor.dataset import Dataset, FieldSpec, Sample, file_dataset, json_dataset

# What these tests are about shows without targets, of which a reader warns (see test_csv.py).
pytestmark = pytest.mark.filterwarnings("ignore:.*the samples have no target:UserWarning")


def lines(tmp_path: Path, *records: Any, name: str = "data.jsonl") -> Path:
    path = tmp_path / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def text(tmp_path: Path, content: str, name: str = "data.json") -> Path:
    path = tmp_path / name
    path.write_text(content, "utf-8")
    return path


def inputs(dataset: Dataset) -> list[object]:
    return [sample.input for sample in dataset]


@pytest.mark.parametrize(
    "content",
    [
        '[{"input": "é"}, {"input": "b"}]',
        '\ufeff[\n {"input": "é"},\n {"input": "b"}\n]\n',
        '{"input": "é"}\n{"input": "b"}\n',
        '{\n "input": "é"\n}\n\n{"input": "b"}',
    ],
)
def test_an_array_or_objects_one_after_the_other(tmp_path: Path, content: str) -> None:
    assert inputs(json_dataset(text(tmp_path, content))) == ["é", "b"]


def test_lines_may_be_empty_and_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = text(tmp_path, '\ufeff{"input": "é"}\n\n  \n{"input": "b"}', "data.jsonl")
    assert inputs(file_dataset(path)) == ["é", "b"]


def test_conversations_become_messages(tmp_path: Path) -> None:
    talk = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "tool", "content": "4", "function": "add", "tool_call_id": "x"},
    ]
    (sample,) = json_dataset(lines(tmp_path, {"input": talk}))
    assert not isinstance(sample.input, str)
    assert [(message.role, message.text, message.source) for message in sample.input] == [
        ("system", "be brief", "input"),
        ("user", "hi", "input"),
        ("tool", "4", "input"),
    ]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"target": ["a", 2.5, True]}, {"target": ["a", "2.5", "True"]}),
        ({"target": 1.5}, {"target": "1.5"}),
        ({"target": None}, {"target": ""}),
        ({"choices": ["a", 2]}, {"choices": ["a", "2"]}),
        ({"choices": "a, b"}, {"choices": ["a", "b"]}),
        ({"choices": '["a, b", "c"]'}, {"choices": ["a, b", "c"]}),
        ({"id": 7}, {"id": 7}),
        ({"id": 7.0}, {"id": 7}),
        ({"id": 0}, {"id": 0}),
        ({"id": float("nan")}, {"id": None}),
        ({"metadata": float("nan"), "files": float("nan"), "setup": None}, {"metadata": None, "files": None}),
        ({"metadata": {"a": None}}, {"metadata": {"a": None}}),
        ({"metadata": '{"a": 2}'}, {"metadata": {"a": 2}}),
        ({"setup": 5}, {"setup": "5"}),
    ],
)
def test_values_of_fields(tmp_path: Path, record: dict[str, Any], expected: dict[str, Any]) -> None:
    (sample,) = json_dataset(lines(tmp_path, {"input": "q", **record}))
    assert {name: getattr(sample, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({"input": None}, "the input (field 'input') is empty"),
        ({"input": float("nan")}, "is empty"),
        ({"input": 5}, "must be text or a list of messages, not 5"),
        ({"input": ["a"]}, "message 1 of the input"),
        ({"input": [{"content": "x"}]}, "must be an object with role and content"),
        ({"input": [{"role": "robot", "content": "x"}]}, "has the role 'robot'"),
        ({"input": "q", "id": 2.5}, "the id (field 'id') must be text or an integer, not 2.5"),
        ({"input": "q", "id": True}, "not True"),
        ({"input": "q", "sandbox": ["docker"]}, "must be a name or a list of name and configuration"),
        ({"input": "q", "files": [1]}, "the field 'files' must be a JSON object"),
        ([1], "a record must be a JSON object, not list"),
    ],
)
def test_bad_values_are_told_with_their_line(tmp_path: Path, record: Any, says: str) -> None:
    path = lines(tmp_path, {"input": "q"}, record)
    with pytest.raises(UsageError) as error:
        json_dataset(path)
    assert f"{path}, line 2: " in str(error.value)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('[{"input": "a"},\n {"input": }]', "line 2: bad JSON"),
        ('[{"input": "a"}\n', "cut off"),
        ('[{"input": "a"} {"input": "b"}]', "expected ',' or ']'"),
        ('[{"input": "a"}] x', "text after the array"),
        ('"text"', "must be a JSON object, not str"),
        ('[{"input": "a"},\n5]', "line 2: a record must be a JSON object, not int"),
    ],
)
def test_broken_arrays_are_told_with_their_line(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        json_dataset(text(tmp_path, content))
    assert says in str(error.value)


def test_broken_lines_are_told_with_line_and_column(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"line 2: bad JSON: .* \(column 2\)"):
        json_dataset(text(tmp_path, '{"input": "a"}\n{bad\n', "data.jsonl"))


def test_metadata_can_be_checked_by_a_model(tmp_path: Path) -> None:
    class Meta(BaseModel, frozen=True):
        topic: str
        level: int = 1

    (beside,) = json_dataset(lines(tmp_path, {"input": "q", "topic": "law", "other": 1}), FieldSpec(metadata=Meta))
    assert beside.metadata == {"topic": "law", "level": 1}
    (inside,) = json_dataset(lines(tmp_path, {"input": "q", "metadata": {"topic": "art"}}), FieldSpec(metadata=Meta))
    assert inside.metadata == {"topic": "art", "level": 1}
    with pytest.raises(UsageError, match="line 1: the metadata do not fit Meta: topic: Field required"):
        json_dataset(lines(tmp_path, {"input": "q"}), FieldSpec(metadata=Meta))

    class Thawed(BaseModel):
        topic: str

    with pytest.raises(UsageError, match="frozen=True"):
        FieldSpec(metadata=Thawed)


def test_paths_are_relative_to_the_datasets_own_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / "cat.png").write_bytes(b"png")
    image = {"role": "user", "content": [{"type": "image", "image": "cat.png"}]}
    path = lines(
        tmp_path,
        {
            "input": [image],
            "files": {"a": "notes.txt", "b": "just text"},
            "sandbox": ["docker", "notes.txt"],
            "setup": "x",
        },
    )
    (sample,) = json_dataset(path)
    assert sample.files == {"a": str(tmp_path / "notes.txt"), "b": "just text"}
    assert sample.sandbox is not None and sample.sandbox.config == str(tmp_path / "notes.txt")
    assert sample.setup == "x"
    assert not isinstance(sample.input, str)
    assert sample.input[0].content[0].image == str(tmp_path / "cat.png")  # type: ignore[union-attr]


def test_a_record_function_may_give_one_sample_several_or_none(tmp_path: Path) -> None:
    path = lines(tmp_path, {"n": 0}, {"n": 1}, {"n": 2})

    def many(record: dict[str, Any]) -> list[Sample]:
        return [Sample(input=f"{record['n']}.{part}") for part in range(record["n"])]

    assert inputs(json_dataset(path, many)) == ["1.0", "2.0", "2.1"]
    assert inputs(json_dataset(path, lambda record: Sample(input=str(record["n"])))) == ["0", "1", "2"]
    assert inputs(json_dataset(path, many, limit=2)) == ["1.0", "2.0"]


def test_a_record_function_is_called_once_a_record_in_order(tmp_path: Path) -> None:
    path = lines(tmp_path, *({"n": number} for number in range(5)))
    calls: list[int] = []

    def counting(record: dict[str, Any]) -> Sample:
        calls.append(record["n"])
        return Sample(input=f"{record['n']} as number {len(calls)}", metadata={"call": len(calls)})

    dataset = json_dataset(path, counting, shuffle=True, seed=2)
    assert sorted(inputs(dataset), key=str) == [f"{number} as number {number + 1}" for number in range(5)]
    assert [dataset.read(0).metadata, dataset.read(0).metadata] == [dataset[0].metadata, dataset[0].metadata]
    assert calls == [0, 1, 2, 3, 4]


def test_a_record_function_may_give_what_no_pickle_can(tmp_path: Path) -> None:
    path = lines(tmp_path, {"n": 1})
    (sample,) = json_dataset(path, lambda record: Sample(input="q", metadata={"check": lambda: record["n"]}))
    assert sample.metadata is not None and sample.metadata["check"]() == 1


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda record: None, "line 1: the record function must return a Sample or several, not None"),
        (lambda record: Sample(input=record["questoin"]), "no field 'questoin'. Did you mean 'question'"),
        (lambda record: 1 / 0, "failed with ZeroDivisionError: division by zero"),
    ],
)
def test_a_failing_record_function_is_told_with_its_line(tmp_path: Path, function: Any, says: str) -> None:
    with pytest.raises(UsageError) as error:
        json_dataset(lines(tmp_path, {"question": "q"}), function)
    assert says in str(error.value)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.dictionaries(st.text(), values, max_size=3), min_size=1, max_size=6), st.integers(0, 3), st.booleans()
)
def test_every_record_is_found_again_at_its_place(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]], indent: int, array: bool
) -> None:
    whole = [{"input": "q", "metadata": record} for record in records]
    ascii_only = indent == 3
    content = (
        json.dumps(whole, indent=indent or None, ensure_ascii=ascii_only)
        if array
        else "\n".join(json.dumps(one, indent=indent or None, ensure_ascii=ascii_only) for one in whole)
    )
    path = tmp_path_factory.mktemp("json") / "data.json"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    dataset = json_dataset(path)
    assert [dataset.read(index).metadata for index in reversed(range(len(dataset)))] == records[::-1]


def test_arrays_larger_than_a_piece_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.dataset._records._CHUNK", 7)
    records = [{"input": "x" * size, "metadata": {"é": [size, {"a": "b"}]}} for size in range(1, 40)]
    dataset = json_dataset(text(tmp_path, json.dumps(records, ensure_ascii=False, indent=1)))
    assert [(sample.input, sample.metadata) for sample in dataset] == [
        (record["input"], record["metadata"]) for record in records
    ]

"""Files and seeds give the samples that Inspect AI reads from them, in its order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import proctor.dataset

Ask = Callable[[str, list[dict[str, Any]]], list[Any]]
Same = Callable[[Any, Any], bool]

RECORDS: list[dict[str, Any]] = [
    {"input": "q1", "target": "B", "choices": ["w", "x", "y", "z"], "id": "one", "metadata": {"a": 1}},
    {"input": "q2", "target": ["A", "C"], "choices": ["w", "x", "y"], "id": 2, "metadata": {"a": {"b": None}}},
    {"input": "q3", "target": "A", "choices": "v, w", "id": 3.0, "metadata": '{"a": 2}'},
    {
        "input": [{"role": "user", "content": "q4"}, {"role": "assistant", "content": "so"}],
        "target": "b",
        "choices": "AB",
    },
    {"input": "q5", "target": "A", "choices": [1, 2.5, True], "files": {"notes.txt": "text"}, "setup": "true"},
]
PLAIN: list[dict[str, Any]] = [
    {"input": "q", "target": 1.5},
    {"input": "q", "target": None, "metadata": None},
    {"input": "q", "target": [1, "a", True]},
    {"input": "q", "choices": 5},
    {"input": "q", "setup": 5, "files": '{"a": "b"}'},
    {"input": "é\n\u2028q", "target": "ü"},
]
TABLE = 'input,target,id\n"a ""quoted"", cell","two\nlines",x1\n\nplain, spaced ,x2\nü,é,3\n'


def cases(folder: Path) -> list[dict[str, Any]]:
    (folder / "records.json").write_text(json.dumps(RECORDS))
    (folder / "choices.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [RECORDS[0], RECORDS[4]] * 10))
    (folder / "plain.jsonl").write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in PLAIN), "utf-8")
    (folder / "table.csv").write_text(TABLE, "utf-8")
    (folder / "bom.csv").write_text(TABLE, "utf-8-sig")
    (folder / "tabs.csv").write_text("input\ttarget\nq\ta,b\n")
    (folder / "bare.csv").write_text("q,a\nr,b\n")
    wanted: list[tuple[str, str, dict[str, Any]]] = [
        ("json_dataset", "records.json", {}),
        ("json_dataset", "records.json", {"auto_id": True}),
        ("json_dataset", "records.json", {"shuffle": True, "seed": 42}),
        ("json_dataset", "records.json", {"shuffle": 7, "limit": 3, "auto_id": True}),
        ("json_dataset", "plain.jsonl", {}),
        ("csv_dataset", "table.csv", {}),
        ("csv_dataset", "bom.csv", {"shuffle": 3}),
        ("csv_dataset", "tabs.csv", {"dialect": "excel-tab"}),
        ("csv_dataset", "tabs.csv", {"delimiter": "\t"}),
        ("csv_dataset", "bare.csv", {"fieldnames": ["input", "target"]}),
    ]
    wanted += [("json_dataset", "choices.jsonl", {"shuffle_choices": seed}) for seed in range(5)]
    wanted += [("json_dataset", "choices.jsonl", {"shuffle": seed, "shuffle_choices": 9}) for seed in range(5)]
    return [{"reader": reader, "path": str(folder / path), "args": args} for reader, path, args in wanted]


def ours(case: dict[str, Any]) -> Any:
    dataset = getattr(proctor.dataset, case["reader"])(case["path"], **case["args"])
    names = ("input", "target", "choices", "id", "metadata", "files", "setup")
    return [
        {name: getattr(sample, name) for name in names}
        | {"input": sample.input if isinstance(sample.input, str) else [one.text for one in sample.input]}
        for sample in dataset
    ]


def test_samples_and_their_order(ask_peer: Ask, same: Same, tmp_path: Path) -> None:
    asked = cases(tmp_path)
    wrong = []
    for case, theirs in zip(asked, ask_peer("read", asked), strict=True):
        mine = ours(case)
        if not same(mine, theirs):
            wrong.append((case, mine, theirs))
    assert wrong == []

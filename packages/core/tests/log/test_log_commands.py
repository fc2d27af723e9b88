"""``proctor log``: each command, and bad input as one clean paragraph."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from log_samples import sample, spec, stats

from proctor.cli import main
from proctor.log import LogWriter, read_eval_log
from proctor.schema import EvalPlan

LOGS = Path(__file__).parents[4] / "tests" / "data" / "eval-logs"


def run(capsysbinary: Any, *arguments: Any) -> tuple[int, str, str]:
    code = main(["log", *map(str, arguments)])
    out, err = capsysbinary.readouterr()
    return code, out.decode(), err.decode()


def test_list_shows_what_each_file_is(capsysbinary: Any, tmp_path: Path) -> None:
    (tmp_path / "good.eval").write_bytes((LOGS / "simple_success.eval").read_bytes())
    (tmp_path / "bad.eval").write_bytes(b"junk")
    (tmp_path / "empty.eval").write_bytes(b"")
    code, out, _ = run(capsysbinary, "list", "--log-dir", tmp_path, "--absolute")
    assert code == 0
    lines = {Path(line.split()[-1]).name: line for line in out.splitlines()}
    assert all(word in lines["good.eval"] for word in ("success    3/3 ", " accuracy 1"))
    assert "not a log" in lines["bad.eval"] and "empty" in lines["empty.eval"]
    code, out, _ = run(capsysbinary, "list", "--log-dir", tmp_path, "--json", "--status", "success")
    (found,) = json.loads(out)
    assert found["task"] == "simple_success" and found["type"] == "file"
    assert (found["status"], found["scored"], found["total"], found["partial"]) == ("success", 3, 3, False)
    assert found["outcomes"] == {} and found["tags"] == []
    every = json.loads(run(capsysbinary, "list", "--log-dir", tmp_path, "--json")[1])
    assert {Path(one["name"]).name: one["status"] for one in every} == {
        "good.eval": "success",
        "bad.eval": None,
        "empty.eval": None,
    }


def test_edits_and_scores_by_command(capsysbinary: Any, tmp_path: Path) -> None:
    log = tmp_path / "quiz.eval"
    log.write_bytes((LOGS / "multi_scorer.eval").read_bytes())
    said = run(capsysbinary, "edit", log, "--add-tag", "good", "--set", "n=1", "--author", "ann", "--json")[1]
    assert json.loads(said)["tags"] == ["good"] and json.loads(said)["metadata"]["n"] == 1
    assert run(capsysbinary, "edit", log)[0] == 2
    assert run(capsysbinary, "invalidate", log)[0] == 2
    code, out, _ = run(capsysbinary, "invalidate", log, "--sample-id", "s0", "--reason", "bad", "--json")
    assert code == 0 and json.loads(out)["outcomes"]["invalidated"] == 1 and json.loads(out)["partial"]
    (listed,) = json.loads(run(capsysbinary, "list", "--log-dir", tmp_path, "--json")[1])
    assert listed["invalidated"] and listed["partial"] and listed["tags"] == ["good"]
    code, out, _ = run(capsysbinary, "invalidate", log, "--all", "--undo", "--json")
    assert code == 0 and not json.loads(out)["invalidated"] and "invalidated" not in json.loads(out)["outcomes"]
    scorer = read_eval_log(log).eval.scorers[0].name  # type: ignore[index]
    assert run(capsysbinary, "edit-score", log, scorer, "--sample-id", "s0")[0] == 2
    assert run(capsysbinary, "edit-score", log, scorer, "--sample-id", "s0", "--value", "0.5")[0] == 0
    assert read_eval_log(log).log_updates[0].provenance.author == "ann"  # type: ignore[index]
    assert run(capsysbinary, "recompute", log)[0] == 0


def test_a_run_that_died_is_told_from_one_that_is_alive(capsysbinary: Any, tmp_path: Path) -> None:
    own = {"proctor": {"unit": "u"}}
    alive = LogWriter.open(str(tmp_path), spec(4, task="alive", metadata=own), EvalPlan())
    dead = LogWriter.open(str(tmp_path), spec(3, task="dead", metadata=own), EvalPlan())
    other = LogWriter.open(str(tmp_path), spec(3, task="other"), EvalPlan())  # of a program that takes no lease
    for writer in (alive, dead, other):
        recorded = threading.Event()
        writer.write(sample(1), on_ack=lambda row, told=recorded: told.set())
        assert recorded.wait(60)
    copies = {}
    for writer in (dead, other):  # nobody writes the copy
        copies[writer] = tmp_path / "x" / Path(writer.location).name
        copies[writer].parent.mkdir(exist_ok=True)
        copies[writer].write_bytes(Path(writer.location).read_bytes())
    shown = run(capsysbinary, "list", tmp_path, "--no-recursive")[1] + run(capsysbinary, "list", tmp_path / "x")[1]
    words = [line.split()[2:5] for line in shown.splitlines()]
    assert ["started", "1/4", "alive"] in words
    assert ["died", "1/3", "dead"] in words
    assert words.count(["started", "1/3", "other"]) == 2
    facts = json.loads(run(capsysbinary, "list", tmp_path / "x", "--json")[1])
    assert {one["task"]: (one["status"], one["alive"], one["recorded"], one["total"]) for one in facts} == {
        "dead": ("started", False, 1, 3),
        "other": ("started", None, 1, 3),
    }
    [died] = json.loads(run(capsysbinary, "list", tmp_path, "--status", "died", "--json")[1])
    assert died["name"].endswith(copies[dead].name)
    for writer in (alive, dead, other):
        writer.finish("cancelled", None, stats())


def test_a_folder_is_answered_with_a_command_that_lists_it(capsysbinary: Any, tmp_path: Path) -> None:
    for command in ("dump", "headers", "list"):
        code, out, err = run(capsysbinary, command, tmp_path)
        if code:
            [advice] = re.findall("`proctor (.*?)`", err)
            assert advice.split() == ["log", "list", str(tmp_path)]
    assert code == 0 and f"No log in {tmp_path}" in out


def test_list_of_nothing(capsysbinary: Any, tmp_path: Path) -> None:
    assert "No log in" in run(capsysbinary, "list", "--log-dir", tmp_path)[1]
    assert json.loads(run(capsysbinary, "list", "--log-dir", tmp_path, "--json")[1]) == []


def test_dump_and_headers(capsysbinary: Any) -> None:
    path = LOGS / "tool_calls.eval"
    dumped = json.loads(run(capsysbinary, "dump", path, "--resolve-attachments", "full")[1])
    assert len(dumped["samples"]) == 4 and dumped["samples"][0]["attachments"] == {}
    assert "samples" not in json.loads(run(capsysbinary, "dump", path, "--header-only")[1])
    headers = json.loads(run(capsysbinary, "headers", path, LOGS / "simple_success.eval")[1])
    assert [header["eval"]["task"] for header in headers] == ["tool_calls", "simple_success"]


def test_lone_surrogates_are_dumped_as_escapes(capsysbinary: Any) -> None:
    code, out, _ = run(capsysbinary, "dump", LOGS / "unicode_surrogates.eval")
    assert code == 0 and len(json.loads(out)["samples"]) == 3


def test_convert(capsysbinary: Any, tmp_path: Path) -> None:
    code, out, _ = run(capsysbinary, "convert", LOGS / "simple_success.eval", "--to", "json", "--output-dir", tmp_path)
    assert code == 0 and read_eval_log(out.strip()).samples == read_eval_log(LOGS / "simple_success.eval").samples
    again = run(capsysbinary, "convert", LOGS / "simple_success.eval", "--to", "json", "--output-dir", tmp_path)
    assert again[0] == 2 and "--overwrite" in again[2]


def test_recover_computes_the_metrics_anew(capsysbinary: Any, tmp_path: Path) -> None:
    target = tmp_path / "whole.eval"
    code, out, _ = run(capsysbinary, "recover", LOGS / "killed_sigkill.eval", "--output", target, "--json")
    assert code == 0 and json.loads(out)["log"] == str(target)
    results = read_eval_log(target).results
    assert results is not None and results.scores[0].metrics["accuracy"].value == 1
    assert results.headline is not None and results.headline.metric == "accuracy"


@pytest.mark.parametrize(
    "command", [["dump"], ["headers"], ["recover"], ["convert", "--to", "json", "--output-dir", "x"]]
)
def test_bad_paths_are_one_paragraph(capsysbinary: Any, tmp_path: Path, command: list[str]) -> None:
    junk = tmp_path / "junk.eval"
    junk.write_bytes(b"junk")
    for path, reason in ((junk, "is not an evaluation log"), (tmp_path / "absent.eval", "absent.eval")):
        code, out, err = run(capsysbinary, *command, path)
        assert (code, out) == (2, "") and err.startswith("Error: ") and reason in err and "Traceback" not in err

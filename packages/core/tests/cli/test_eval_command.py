"""``proctor eval`` turns words into options, and a run into lines, JSON and an exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from proctor.cli import main, parse_eval
from proctor.contracts import UsageError
from proctor.schema import (
    GROUPS,
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalMetric,
    EvalResults,
    EvalScore,
    EvalSpec,
    option_table,
)


@pytest.fixture(autouse=True)
def _own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with mock.patch.dict(os.environ):
        yield


@dataclass
class Engine:
    """Stands for the engine: remembers what it was told and returns what it was given."""

    logs: list[EvalLog] = field(default_factory=list)
    exit_code: int = 0
    units: tuple[Any, ...] = ()
    error: BaseException | None = None
    says: str = ""
    told: list[tuple[Any, Any, Mapping[str, Any]]] = field(default_factory=list)

    def run(self, tasks: Any, model: Any, options: Mapping[str, Any], **more: Any) -> SimpleNamespace:
        self.told.append((tasks, model, dict(options)))
        if self.says:
            print(self.says)
        if self.error is not None:
            raise self.error
        return SimpleNamespace(logs=self.logs, exit_code=self.exit_code, units=self.units, estimates=())


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    fake = Engine()
    module = ModuleType("proctor.engine")
    module.run = fake.run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "proctor.engine", module)
    return fake


def a_log(status: str = "success", value: float = 0.75) -> EvalLog:
    metrics = {"accuracy": EvalMetric(name="accuracy", value=value), "stderr": EvalMetric(name="stderr", value=0.1)}
    return EvalLog.model_validate(
        {
            "status": status,
            "eval": EvalSpec(
                created="2026-11-29T11:27:19+00:00",
                task="quiz",
                dataset=EvalDataset(),
                model="mock/model",
                config=EvalConfig(),
                run_id="R",
                eval_id="E",
            ),
            "results": EvalResults(
                total_samples=4,
                completed_samples=4,
                scores=[EvalScore(name="match", scorer="match", scored_samples=4, metrics=metrics)],
            ),
        }
    ).model_copy(update={"location": "logs/quiz.eval"})


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ("q.py --limit 10-20 --epochs 3", {"limit": (9, 20), "epochs": 3}),
        (
            "q.py -T a=1 -T b=x,y -M latency=0.5",
            {"task_args": {"a": 1, "b": ["x", "y"]}, "model_args": {"latency": 0.5}},
        ),
        ("q.py --log-images --no-log-samples", {"log_images": True, "log_samples": False}),
        ("--fail-on-error q.py", {"fail_on_error": True}),
        ("--fail-on-error=0.1 q.py", {"fail_on_error": 0.1}),
        ("--fail-on-error 5 q.py", {"fail_on_error": 5.0}),
        ("--fail-on-error 0.1 q.py --no-fail-on-error", {"fail_on_error": False}),
        ("--retry-on-error q.py", {"retry_on_error": 1}),
        ("--retry-on-error 3 q.py", {"retry_on_error": 3}),
        ("q.py --retry-on-error", {"retry_on_error": 1}),
        ("--sample-shuffle q.py", {"sample_shuffle": True}),
        ("--sample-shuffle 42 q.py", {"sample_shuffle": 42}),
        ("q.py --continue-on-fail --logprobs", {"continue_on_fail": True, "logprobs": True}),
        ("q.py --no-score --score", {"score": True}),
        ("q.py --sample-id a,7 --tags x,y", {"sample_id": ["a", 7], "tags": ["x", "y"]}),
        ("q.py --temperature 0.5 --temperature 1", {"temperature": 1.0}),
        ("q.py --observer a:k=v,l=w --observer b", {"observers": ["a:k=v,l=w", "b"]}),
        ("q.py --plugin ./p.py --disable-plugin x", {"plugins": ["./p.py"], "disable_plugins": ["x"]}),
        ("q.py --model a/b,c/d --model e/f", {"model": ["a/b", "c/d", "e/f"]}),
        ("q.py --model-role grader=a/b", {"model_roles": {"grader": "a/b"}}),
        ("q.py", {}),
    ],
)
def test_words_become_options(arguments: str, options: dict[str, Any]) -> None:
    tasks, parsed = parse_eval(arguments.split())
    assert tasks == ["q.py"]
    assert parsed == options


def test_what_stands_after_two_dashes_is_a_task() -> None:
    assert parse_eval(["--", "--fail-on-error"]) == (["--fail-on-error"], {})


def test_every_option_has_a_flag_that_works() -> None:
    samples = {
        "int": "3",
        "number": "0.5",
        "pairs": "a=1",
        "roles": "r=a/b",
        "range": "3",
        "tokens": "3k",
        "threshold": "0.5",
        "bool_or_int": "3",
        "bool_or_text": "true",
        "adaptive": "1-20-100",
        "mapping": "{a: 1}",
        "schema": "{type: object}",
        "biases": "1=2",
    }
    for key, option in option_table().items():
        value = option.choices[0] if option.choices else samples.get(option.form, "x")
        words = option.flags if option.form == "flag" else [f"{option.flags[0]}={value}"]
        if not option.flags[0].startswith("--"):
            words = [option.flags[0], value]
        _, parsed = parse_eval(["q.py", *words])
        assert list(parsed) == [key]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--modle", "a/b"], "there is no option --modle. Did you mean --model"),
        (["--no-fail-on-eror"], "Did you mean --no-fail-on-error"),
        (["--limit", "0"], "--limit: 0 is too small: the smallest is 1."),
        (["--epochs", "0"], "--epochs: 0 is too small: the smallest is 1."),
        (["--retry-on-error", "-1"], "--retry-on-error: -1 is too small"),
        (["-T", "novalue"], "-T: 'novalue' is not NAME=VALUE."),
        (["--log-format", "xml"], "--log-format: 'xml' is none of eval, json."),
        (["--env", "novalue"], "--env: 'novalue' is not NAME=VALUE."),
        (["--model"], "requires an argument"),
    ],
)
def test_a_bad_option_is_one_paragraph_and_exit_2(
    engine: Engine, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert main(["eval", "q.py", *arguments]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert "Traceback" not in error
    assert engine.told == []
    with pytest.raises(UsageError):
        parse_eval(["q.py", *arguments])


@pytest.mark.parametrize("arguments", [["--sample-id", ""], ["--sample-id", ","], ["--sample-id="]])
@pytest.mark.parametrize("command", ["eval", "eval-set"])
def test_ids_of_no_sample_are_refused(
    engine: Engine, capsys: pytest.CaptureFixture[str], command: str, arguments: list[str]
) -> None:
    assert main([command, "quiz.py", "--model", "mock/model", *arguments]) == 2
    assert "--sample-id: " in (said := capsys.readouterr().err) and "names no sample" in said
    assert engine.told == []


def test_a_variable_with_ids_of_no_sample_is_refused(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    os.environ["PROCTOR_EVAL_SAMPLE_ID"] = ","
    assert main(["eval", "quiz.py"]) == 2
    assert "PROCTOR_EVAL_SAMPLE_ID=',': it names no sample" in capsys.readouterr().err


def test_no_task_is_refused_with_the_way_to_find_one(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval"]) == 2
    assert "`proctor list tasks`" in capsys.readouterr().err


def test_the_environment_is_asked_for_what_the_command_line_leaves_open(engine: Engine) -> None:
    os.environ.update({"PROCTOR_EVAL_MODEL": "a/b", "PROCTOR_EVAL_EPOCHS": "5", "PROCTOR_LOG_DIR": "there"})
    assert main(["eval", "q.py", "--epochs", "2", "--env", "PROCTOR_EVAL_SEED=7"]) == 0
    assert engine.told == [(["q.py"], ["a/b"], {"epochs": 2, "log_dir": "there", "seed": 7})]


def test_a_bad_variable_is_a_usage_error(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    os.environ["PROCTOR_EVAL_LIMIT"] = "0"
    assert main(["eval", "q.py"]) == 2
    assert "PROCTOR_EVAL_LIMIT='0'" in capsys.readouterr().err


def test_a_misspelt_variable_is_warned_of_once(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    os.environ |= {"PROCTOR_EVAL_EPCHS": "2", "PROCTOR_EVAL_XYZZY": "1", "PROCTOR_EVAL_EPOCHS": "3"}
    os.environ["PROCTOR_EVAL_SET_ID"] = "of eval-set, not of eval"
    assert main(["eval", "quiz.py"]) == 0
    [line] = capsys.readouterr().err.splitlines()
    assert "PROCTOR_EVAL_EPCHS (did you mean PROCTOR_EVAL_EPOCHS?), PROCTOR_EVAL_XYZZY: it has no effect" in line


def test_an_empty_variable_that_was_to_choose_samples_is_warned_of(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    os.environ |= {"PROCTOR_EVAL_SAMPLE_ID": "", "PROCTOR_EVAL_LIMIT": "", "PROCTOR_EVAL_EPOCHS": ""}
    assert main(["eval", "quiz.py", "--limit", "3"]) == 0
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("Warning: PROCTOR_EVAL_SAMPLE_ID is set but empty") and "or --sample-id;" in line
    assert main(["eval", "quiz.py", "--limit", "3", "--sample-id", ""]) == 2


@pytest.mark.parametrize("code", [0, 1, 3, 130, 143])
def test_the_exit_code_is_the_run_s(engine: Engine, code: int) -> None:
    engine.exit_code = code
    assert main(["eval", "q.py"]) == code


def test_an_interrupt_before_the_run_is_130(engine: Engine) -> None:
    engine.error = KeyboardInterrupt()
    assert main(["eval", "q.py"]) == 130


def test_without_a_display_the_results_are_still_printed(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    engine.logs = [a_log()]
    assert main(["eval", "q.py", "--display", "none"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "quiz · mock/model · done"
    assert "  accuracy  0.750 ± 0.100  4 / 4 scored" in lines
    assert "  log       logs/quiz.eval" in lines


def test_a_display_has_printed_the_results_itself(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    engine.logs = [a_log()]
    assert main(["eval", "q.py", "--display", "plain"]) == 0
    assert capsys.readouterr().out == ""


def test_json_is_all_that_stands_on_standard_output(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    engine.logs = [a_log(), a_log(value=float("nan"))]
    engine.says = "printed by a task"
    engine.exit_code = 3
    assert main(["eval", "q.py", "--json"]) == 3
    captured = capsys.readouterr()
    summary = json.loads(captured.out, parse_constant=pytest.fail)
    assert summary["exit_code"] == 3
    first, second = summary["logs"]
    assert first["task"] == "quiz"
    assert first["location"] == "logs/quiz.eval"
    assert first["metrics"] == [
        {
            "scorer": "match",
            "name": "accuracy",
            "value": 0.75,
            "stderr": 0.1,
            "scored": 4,
            "total": 4,
            "reducer": None,
            "missing": {},
            "partial": False,
        }
    ]
    assert first["partial"] is False
    assert second["metrics"][0]["value"] is None
    assert captured.err == "printed by a task\n"
    assert engine.told[0][2]["display"] == "none"


def test_json_and_a_display_do_not_go_together(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "q.py", "--json", "--display", "rich"]) == 2
    assert "leave one of the two out" in capsys.readouterr().err


def test_json_goes_before_the_display_of_the_environment(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_DISPLAY", "plain")  # in a .env file it holds for every call
    main(["eval", "q.py", "--json"])
    assert engine.told[0][2]["display"] == "none"


def _a_unit(total: int | None, epochs: int, label: str = "") -> SimpleNamespace:
    model = SimpleNamespace(name="a/b")
    return SimpleNamespace(id="ab12", name="quiz", label=label, model=model, total=total, epochs=epochs)


def test_a_dry_run_shows_the_plan(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    engine.units = (_a_unit(30, 3), _a_unit(None, 1), _a_unit(1, 1, "subject=law"))
    assert main(["eval", "q.py", "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "This would run 3 units (a task with a model):",
        "  quiz · a/b · 30 samples (3 epochs) · ab12",
        "  quiz · a/b · samples of unknown number · ab12",
        "  quiz · subject=law · a/b · 1 sample · ab12",
    ]
    assert main(["eval", "q.py", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["units"][0] == {
        "unit": "ab12",
        "task": "quiz",
        "label": None,
        "model": "a/b",
        "samples": 30,
        "epochs": 3,
    }


def test_help_is_grouped_fits_80_columns_and_tells_the_exit_codes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["eval", "--help"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    places = [text.index(f"\n{group}:\n") for group in GROUPS]
    assert places == sorted(places)
    for option in option_table().values():
        for flag in (*option.flags, *option.off_flags):
            assert f"{flag}" in text
    for code in ("0", "1", "2", "3", "130", "143"):
        assert any(line.split()[:1] == [code] for line in text.partition("Exit codes:")[2].splitlines())
    assert "[PROCTOR_LOG_DIR]" in text


@pytest.mark.parametrize(
    ("variable", "flag", "kept", "gone"),
    [
        ("PROCTOR_EVAL_MAX_CONNECTIONS", "--adaptive-connections=40", "adaptive_connections", "max_connections"),
        ("PROCTOR_EVAL_ADAPTIVE_CONNECTIONS", "--max-connections=40", "max_connections", "adaptive_connections"),
    ],
)
def test_connections_said_on_the_command_line_replace_those_of_the_environment(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, variable: str, flag: str, kept: str, gone: str
) -> None:
    monkeypatch.setenv(variable, "5")
    assert main(["eval", "q.py", flag]) == 0
    [(_, _, options)] = engine.told
    assert options[kept] == 40
    assert gone not in options


def test_a_log_in_memory_is_said_to_be_lost(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    for options, said in ((["--log-dir", "memory://x"], True), (["--log-dir", "x"], False)):
        assert main(["eval", "q.py", "--model", "m/m", *options]) == 0
        assert ("the log is gone when the command ends" in capsys.readouterr().err) == said
    assert main(["eval", "q.py", "--model", "m/m", "--log-dir", "memory://", "--dry-run"]) == 0
    assert capsys.readouterr().err == ""

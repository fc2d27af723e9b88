"""The exit codes of ``proctor eval``, each from a real run of a real process."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from child_processes import running

from proctor.log import read_eval_log

TASK = """
import anyio
from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes
from proctor.solver import solver

@solver
def some_fail(failing, waits):
    async def solve(state, generate):
        state = await generate(state)
        if state.sample_id <= failing:
            raise ValueError("this one fails")
        if waits:
            print("WAITING", flush=True)
            await anyio.sleep_forever()
        return state
    return solve

@task
def ten(failing: int = 0, waits: bool = False):
    samples = [Sample(input="q", target="Default", id=number) for number in range(1, 11)]
    return Task(dataset=samples, solver=some_fail(failing, waits), scorer=includes())
"""

PRICES = {"mock/model": {"input": 1000.0, "output": 1000.0}}


def _command(tmp_path: Path, *options: str) -> list[str]:
    (tmp_path / "ten.py").write_text(TASK)
    (tmp_path / "prices.json").write_text(json.dumps(PRICES))
    command = [sys.executable, "-m", "proctor", "eval", "ten.py", "--model", "mock/model"]
    return [*command, "--display", "none", "--log-dir", "logs", "--max-samples", "1", *options]


def _run(tmp_path: Path, *options: str) -> tuple[int, str, Any]:
    command = _command(tmp_path, *options)
    with running(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        output, _ = process.communicate(timeout=60)
    logs = list((tmp_path / "logs").glob("*.eval"))
    return process.returncode, output, read_eval_log(str(logs[0])) if logs else None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "code", "status", "samples"),
    [
        ("", 0, "success", 10),
        ("-T failing=2", 1, "error", 1),
        ("-T failing=2 --fail-on-error", 1, "error", 1),
        ("-T failing=2 --no-fail-on-error", 0, "success", 10),
        ("-T failing=2 --fail-on-error=0.2", 0, "success", 10),
        ("-T failing=2 --fail-on-error=0.1", 1, "error", 2),
        ("-T failing=2 --fail-on-error=2", 0, "success", 10),
        ("-T failing=2 --fail-on-error=1", 1, "error", 2),
        ("-T failing=2 --continue-on-fail", 3, "error", 10),
        ("-T failing=2 --continue-on-fail --fail-on-error=0.1", 3, "error", 10),
        ("-T failing=2 --continue-on-fail --fail-on-error=0.5", 0, "success", 10),
        ("-T failing=10 --no-fail-on-error", 3, "error", 10),
        ("-T failing=1 --retry-on-error", 1, "error", 1),
        ("--fail-on-error=1.5", 2, None, 0),
        ("--cost-limit 1", 2, None, 0),
        ("-T nothing=1", 2, None, 0),
        ("--model nobody/model", 2, None, 0),
        ("--max-tokens-total 1", 1, "cancelled", 1),
        ("--max-cost 0.001 --model-cost-config prices.json", 1, "cancelled", 1),
        ("--estimate=2 -T failing=1 --fail-on-error=0.9", 0, "success", 2),
    ],
)
def test_the_exit_code_says_how_it_went(
    tmp_path: Path, options: str, code: int, status: str | None, samples: int
) -> None:
    returned, output, log = _run(tmp_path, *options.split())

    assert returned == code, output
    assert (None if log is None else log.status) == status
    assert (0 if log is None else len(log.samples)) == samples


@pytest.mark.slow
def test_a_sample_that_failed_keeps_what_it_had_of_each_attempt(tmp_path: Path) -> None:
    _, _, log = _run(tmp_path, "-T", "failing=1", "--retry-on-error=2", "--no-fail-on-error")

    failed = next(sample for sample in log.samples if sample.id == 1)
    assert "this one fails" in failed.error.message
    assert [message.role for message in failed.messages] == ["user", "assistant"]
    assert any(event.event == "model" for event in failed.events)
    assert len(failed.error_retries) == 2
    assert all(any(event["event"] == "model" for event in _plain(one.events)) for one in failed.error_retries)


def _plain(events: Any) -> list[Any]:
    return [event if isinstance(event, dict) else {"event": event.event} for event in events or []]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_has_its_own_code(tmp_path: Path, number: signal.Signals, code: int) -> None:
    command = _command(tmp_path, "-T", "waits=true")
    with running(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "WAITING" in line, line + process.stdout.read()
        process.send_signal(number)
        output, _ = process.communicate(timeout=60)

    assert process.returncode == code, output


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_fault_of_a_run(tmp_path: Path, closed: str) -> None:
    """As a daemon has them: what is opened next must not be taken for one of them."""
    command = shlex.join(_command(tmp_path))
    done = subprocess.run(["sh", "-c", f"{command} {closed}"], cwd=tmp_path, stderr=subprocess.PIPE, timeout=60)

    assert done.returncode == 0
    assert b"turned off" not in done.stderr


@pytest.mark.slow
def test_an_estimate_is_printed_for_people_and_for_machines(tmp_path: Path) -> None:
    _, said, _ = _run(tmp_path, "--estimate=3", "--model-cost-config", "prices.json")
    _, text, _ = _run(tmp_path, "--estimate=3", "--json", "--model-cost-config", "prices.json")

    assert "ten · mock/model: 10 runs" in said
    assert "pilot   3 samples" in said
    [estimate] = json.loads(text[text.index("{") :])["estimates"]
    assert (estimate["pilot"], estimate["runs"]) == (3, 10)
    assert estimate["tokens"]["low"] <= estimate["tokens"]["value"] <= estimate["tokens"]["high"]
    assert estimate["cost"]["value"] > 0

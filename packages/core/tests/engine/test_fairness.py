"""Mixed fast and slow models, in simulated time: none of them waits for another one's units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from engine_runs import sums
from trio.testing import MockClock

from proctor import Task, eval_async
from proctor.model import Model, ModelOutput, get_model
from proctor.schema import EvalLog
from proctor.scorer import includes

LATENCY = {"fast": 1.0, "middling": 3.0, "slow": 9.0}  # seconds of the simulated clock
CONNECTIONS = 4
SAMPLES = 40


class Speedometer:
    """Three models with connections of their own; when each was asked first and answered last, and its units."""

    def __init__(self) -> None:
        self.first: dict[str, float] = {}
        self.last: dict[str, float] = {}
        self.in_flight: dict[str, int] = dict.fromkeys(LATENCY, 0)
        self.peak: dict[str, int] = dict.fromkeys(LATENCY, 0)

    def model(self, name: str) -> Model:
        async def reply(input: Any, *more: Any) -> ModelOutput:
            self.first.setdefault(name, trio.current_time())
            self.in_flight[name] += 1
            self.peak[name] = max(self.peak[name], self.in_flight[name])
            await trio.sleep(LATENCY[name])
            self.in_flight[name] -= 1
            self.last[name] = trio.current_time()
            return ModelOutput.from_content(name, "1")

        return get_model(f"mock/{name}", base_url=f"http://{name}.test", custom_outputs=reply, memoize=False)

    def seconds(self, name: str) -> float:
        return self.last[name] - self.first[name]


@pytest.fixture(autouse=True)
def _nothing_but_requests_takes_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated clock goes on whenever all wait: also for a thread, and from one beat of the run to the next."""

    async def at_once(function: Callable[[], Any], *args: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return function(*args)

    monkeypatch.setattr("proctor.engine._run_unit.to_thread", SimpleNamespace(run_sync=at_once))
    monkeypatch.setattr("proctor.concurrency._run._IDLE", 1e9)
    monkeypatch.setattr("proctor.monitor._watchdog.BEAT", 1e9)


def simulate(folder: Path, names: Sequence[str], tasks: int, **options: Any) -> Speedometer:
    speed = Speedometer()
    asked = [Task(dataset=sums(SAMPLES), scorer=includes(), name=f"task {number}") for number in range(tasks)]
    evaluate = partial(
        eval_async,
        asked,
        [speed.model(name) for name in names],
        max_connections=CONNECTIONS,
        display="none",
        log_dir=str(folder),
        log_samples=False,
        **options,
    )
    logs: list[EvalLog] = trio.run(evaluate, clock=MockClock(autojump_threshold=0))
    assert [log.status for log in logs] == ["success"] * (tasks * len(names))
    return speed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:--max-tasks 5 makes nothing faster:UserWarning")
@pytest.mark.parametrize(("tasks", "options"), [(1, {}), (3, {}), (3, {"max_tasks": 5})])
def test_each_of_three_models_is_nearly_as_fast_as_alone(tasks: int, options: dict[str, Any], tmp_path: Path) -> None:
    alone = {name: simulate(tmp_path, [name], tasks).seconds(name) for name in LATENCY}

    together = simulate(tmp_path, list(LATENCY), tasks, **options)

    for name, seconds in alone.items():
        ideal = tasks * SAMPLES / CONNECTIONS * LATENCY[name]
        assert seconds <= 1.05 * ideal
        assert together.seconds(name) <= 1.2 * seconds
        assert together.peak[name] == CONNECTIONS


def test_a_place_that_a_fast_model_leaves_is_used_by_the_others(tmp_path: Path) -> None:
    """Six units, two at once: no place is empty while a unit waits, whatever its model is."""
    speed = simulate(tmp_path, ["fast", "slow"], 3, max_tasks=2)

    ideal = 3 * SAMPLES / CONNECTIONS * LATENCY["slow"]
    assert speed.seconds("slow") <= 1.05 * ideal
    assert speed.seconds("fast") <= 1.05 * 3 * SAMPLES / CONNECTIONS * LATENCY["fast"]

"""Runs whose connections follow the provider: samples follow the limit, and the log says how it moved."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from proctor import Task, eval_async
from proctor.concurrency import ConnectionPolicy
from proctor.contracts import ModelAPI, Retry
from proctor.dataset import Sample
from proctor.engine._options import connection_policy, resolve_options
from proctor.model import GenerateConfig, Model, ModelOutput
from proctor.scorer import includes


class Refused(Exception):
    pass


class Provider(ModelAPI):
    """Refuses what is over its capacity, as providers do: at once."""

    def __init__(self, capacity: int, latency: float = 0.01) -> None:
        super().__init__("m")
        self.capacity, self.latency = capacity, latency
        self.in_flight = self.peak = self.refused = self.answered = 0
        self.asked: list[float] = []

    def connection_key(self) -> str:
        return f"provider:{id(self)}"

    def classify(self, exc: BaseException) -> Retry:
        return Retry("rate_limit", 0.02) if isinstance(exc, Refused) else Retry("permanent")

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        self.asked.append(time.monotonic())
        if self.in_flight >= self.capacity:
            self.refused += 1
            raise Refused("too many")
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await anyio.sleep(self.latency)
        finally:
            self.in_flight -= 1
        self.answered += 1
        return ModelOutput.from_content("mock/m", "4")


def task(samples: int) -> Task:
    return Task(dataset=[Sample(input="2 + 2", target="4", id=n) for n in range(samples)], scorer=includes())


def model(api: ModelAPI, config: GenerateConfig | None = None) -> Model:
    return Model(api, config, "mock/m")


def test_the_limit_finds_the_capacity_and_the_log_tells_how(run: Any) -> None:
    api = Provider(capacity=12)
    [log] = run(task(600), model(api), adaptive_connections={"min": 1, "start": 2, "max": 50})
    assert log.status == "success"
    assert (api.answered, api.peak) == (600, 12), "samples followed the limit up to all that the provider takes"
    assert api.refused < 60
    moved = log.stats.connection_limit_history
    assert {change["reason"] for change in moved} >= {"slow_start", "rate_limit"}
    assert moved[0]["old_limit"] == 2 and moved[0]["model"] == "mock/m"
    assert all(first["new_limit"] == then["old_limit"] for first, then in pairwise(moved))
    assert sorted(change["timestamp"] for change in moved) == [change["timestamp"] for change in moved]


def test_a_limit_above_the_capacity_from_the_start_falls(run: Any) -> None:
    api = Provider(capacity=3)
    [log] = run(task(200), model(api), adaptive_connections=True)
    assert (log.status, api.answered, api.peak) == ("success", 200, 3)
    assert log.stats.connection_limit_history[-1]["new_limit"] <= 4


def test_a_fixed_number_stays_and_has_no_history(run: Any) -> None:
    api = Provider(capacity=50)
    [log] = run(task(100), model(api), max_connections=7)
    assert (api.peak, api.refused, log.stats.connection_limit_history) == (7, 0, [])


def test_other_samples_run_while_refused_ones_wait(run: Any) -> None:
    api = Provider(capacity=4)
    [log] = run(task(100), model(api), max_connections=5)
    assert (log.status, api.answered) == ("success", 100)
    assert api.refused > 0


def test_more_samples_than_connections_are_no_fault(run: Any) -> None:
    api = Provider(capacity=50)
    [log] = run(task(60), model(api), max_connections=3, max_samples=30)
    assert (log.status, api.peak) == ("success", 3)


def test_a_number_and_a_moving_limit_contradict_each_other(run: Any) -> None:
    with pytest.raises(ValueError, match="give one of them"):
        run(task(1), model(Provider(1)), max_connections=3, adaptive_connections=True)


def test_what_the_options_say_of_connections() -> None:
    options = resolve_options({"adaptive_connections": 30, "max_rpm": 60, "max_tpm": 1000, "share": "us"})
    assert connection_policy(options) == ConnectionPolicy(None, 30, 60, 1000, "us")
    with pytest.raises(ValueError, match="1 <= min <= start <= max"):
        connection_policy(resolve_options({"adaptive_connections": {"min": 9, "max": 3}}))


def test_requests_a_minute_are_kept(run: Any) -> None:
    api = Provider(capacity=50, latency=0.0)
    begun = time.monotonic()
    [log] = run(task(5), model(api), max_rpm=1200)  # one each 50 ms
    waits = [(sample.total_time or 0) - (sample.working_time or 0) for sample in log.samples or []]
    assert (log.status, len(api.asked)) == ("success", 5)
    # Not after the first one arrived: a slow machine may have kept that on its way while the pace went on.
    assert api.asked[-1] - begun >= 0.2, "the last left four intervals after the first"
    assert max(waits) > 0.04, "a wait for the pace is no work"


@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore:--max-tasks 2 makes nothing faster:UserWarning")
async def test_two_tasks_of_one_model_share_the_limit(tmp_path: Path) -> None:
    api = Provider(capacity=8)
    one = model(api)
    logs = await eval_async(
        [task(100), Task(name="other", dataset=[Sample(input="2", target="4", id=n) for n in range(100)])],
        one,
        display="none",
        max_tasks=2,
        adaptive_connections={"start": 2, "max": 40},
        log_dir=str(tmp_path),
    )
    assert [log.status for log in logs] == ["success", "success"]
    assert (api.answered, api.peak) == (200, 8)

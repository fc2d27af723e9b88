"""What a run may cost: prices, limits of samples, budgets of runs, and estimates before there is one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import Task
from proctor.contracts import UsageError
from proctor.dataset import MemoryDataset, Sample
from proctor.engine import exit_code
from proctor.engine._estimate import _student, estimate_total
from proctor.log import read_eval_log_sample_summaries
from proctor.model import Model, ModelCost, ModelOutput, ModelPrices, get_model
from proctor.schema import EvalLog, ModelUsage
from proctor.scorer import includes

Run = Callable[..., list[EvalLog]]

PRICES = {"mock/model": {"input": 1.0, "output": 2.0}}


def _model() -> Model:
    """Each answer costs a dollar: 400,000 tokens in, 300,000 out."""

    def reply(*_: Any) -> ModelOutput:
        output = ModelOutput.from_content("model", "x")
        output.usage = ModelUsage(input_tokens=400_000, output_tokens=300_000, total_tokens=700_000)
        return output

    return get_model("mock/model", custom_outputs=reply, memoize=False)


def _task(count: int = 6, **more: Any) -> Task:
    samples = [Sample(input="q", target="x", id=number) for number in range(1, count + 1)]
    return Task(dataset=MemoryDataset(samples), scorer=includes(), **more)


def test_a_call_costs_what_its_tokens_cost_and_caches_have_prices_of_their_own() -> None:
    usage = ModelUsage(
        input_tokens=1_000_000,
        output_tokens=2_000_000,
        input_tokens_cache_write=1_000_000,
        input_tokens_cache_read=1_000_000,
    )
    assert ModelCost(1, 2, 3, 0.5).dollars(usage) == 8.5  # as the peer computes it
    assert ModelCost(1, 2).dollars(usage) == 7


def test_the_longest_pattern_that_fits_has_the_price() -> None:
    prices = ModelPrices.of({"openai/*": {"input": 1, "output": 1}, "openai/gpt-5*": {"input": 2, "output": 2}}, "f")
    found = prices.find("openai/gpt-5-mini")
    assert found is not None
    assert found.input == 2
    assert prices.find("other/model") is None


@pytest.mark.parametrize("wrong", [{"input": 1}, {"input": 1, "output": -1}, {"input": 1, "output": 1, "x": 1}, 3])
def test_what_is_no_price_is_refused(run: Run, wrong: Any) -> None:
    with pytest.raises(UsageError, match="the prices of mock/model"):
        run(_task(), _model(), model_cost_config={"mock/model": wrong})


def test_costs_stand_in_the_log(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps(PRICES))

    [log] = run(_task(3), _model(), model_cost_config=str(file))

    assert log.stats.model_usage["mock/model"].total_cost == pytest.approx(3.0)


def test_a_cost_limit_ends_the_sample_that_goes_over_it(run: Run) -> None:
    [log] = run(_task(1), _model(), model_cost_config=PRICES, cost_limit=0.5)

    assert log.samples is not None
    [sample] = log.samples
    assert sample.limit is not None
    assert (sample.limit.type, sample.limit.limit) == ("cost", 0.5)
    assert sample.scores  # it is scored with what it has


@pytest.mark.parametrize("limit", ["cost_limit", "max_cost"])
def test_a_cost_that_is_not_known_can_not_be_limited(run: Run, limit: str) -> None:
    with pytest.raises(UsageError, match=r"what mock/model costs is not known.*--model-cost-config"):
        run(_task(), _model(), **{limit: 1.0})


@pytest.mark.parametrize(
    ("budget", "said"), [({"max_cost": 2.5}, "max_cost"), ({"max_tokens_total": 2_000_000}, "max_tokens_total")]
)
def test_no_sample_starts_once_the_budget_of_the_run_is_spent(run: Run, budget: dict[str, Any], said: str) -> None:
    [log] = run(_task(6), _model(), model_cost_config=PRICES, max_samples=1, **budget)

    assert log.status == "cancelled"
    assert log.results is not None
    assert (log.results.total_samples, log.results.completed_samples) == (6, 3)
    assert log.results.metadata is not None
    assert log.results.metadata["proctor"]["outcomes"]["not_run"] == 3
    assert (log.eval.metadata or {})["proctor"]["stopped_by"].startswith(said)
    assert exit_code([log]) == 1


def test_a_budget_that_the_last_sample_uses_up_stops_nothing(run: Run) -> None:
    [log] = run(_task(3), _model(), model_cost_config=PRICES, max_samples=1, max_cost=3.0)

    assert (log.status, exit_code([log])) == ("success", 0)


def test_units_that_find_the_budget_spent_have_logs_to_go_on_from(run: Run) -> None:
    logs = run([_task(2, name="a"), _task(2, name="b")], _model(), model_cost_config=PRICES, max_cost=2.0, max_tasks=1)

    assert [log.status for log in logs] == ["success", "cancelled"]
    assert all(log.location for log in logs)


# Estimates


def test_a_pilot_is_spread_over_the_dataset_and_recorded(run: Run) -> None:
    [log] = run(_task(100, epochs=3), _model(), model_cost_config=PRICES, estimate=5)

    assert [sample.id for sample in read_eval_log_sample_summaries(log.location)] == [11, 31, 51, 71, 91]
    assert log.status == "success"


def test_what_has_no_length_can_not_be_estimated(run: Run) -> None:
    from proctor.dataset import IterableDataset

    endless = IterableDataset(lambda: (Sample(input="q", target="x") for _ in range(3)))
    with pytest.raises(UsageError, match="one by one"):
        run(Task(dataset=endless, scorer=includes()), _model(), estimate=5)


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.706), (2, 4.303), (3, 3.182), (9, 2.262), (30, 2.042)])
def test_students_t_is_that_of_the_tables(freedom: int, quantile: float) -> None:
    assert _student(freedom) == pytest.approx(quantile, rel=2e-3)


def test_the_estimate_is_that_of_a_sample_without_replacement() -> None:
    amount = estimate_total([1.0, 2.0, 3.0, 4.0], 100)

    margin = 3.182 * 100 * math.sqrt(5 / 3) / 2 * math.sqrt(0.96)
    assert amount.value == 250
    assert amount.high == pytest.approx(250 + margin, rel=2e-3)
    assert amount.low == pytest.approx(max(10, 250 - margin), abs=1)


@given(values=st.lists(st.floats(0, 1e6), min_size=1, max_size=30), more=st.integers(0, 1000))
def test_what_was_measured_is_certain_and_the_interval_is_around_the_estimate(values: list[float], more: int) -> None:
    amount = estimate_total(values, len(values) + more)

    slack = 1e-9 * (1 + amount.value)
    assert sum(values) - slack <= amount.low <= amount.value + slack
    assert amount.value <= amount.high + slack
    if more == 0:
        assert amount.low == amount.high == pytest.approx(sum(values))

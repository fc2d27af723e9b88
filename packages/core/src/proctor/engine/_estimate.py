"""What an evaluation would take, from a few of its samples.

The total of N runs is estimated by N times the mean of a pilot of n runs, with the standard error of a sample drawn
without replacement, ``N * s / sqrt(n) * sqrt(1 - n / N)``, and the 95 % interval of Student's t with n - 1 degrees of
freedom (Cochran, Sampling Techniques, 3rd ed. 1977, sections 2.6 to 2.9). The pilot is spread evenly over the dataset,
which is taken for a random sample here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, fmean, stdev

from proctor.contracts import UsageError
from proctor.dataset import IterableDataset, Selection
from proctor.engine._unit import Unit
from proctor.log import read_eval_log_sample_summaries
from proctor.schema import EvalLog, EvalSampleSummary

__all__ = ["Amount", "UnitEstimate", "estimate_total", "pilot", "unit_estimate"]


@dataclass(frozen=True, slots=True)
class Amount:
    """An estimate, with the 95 % interval around it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class UnitEstimate:
    """What a task with a model would take.

    Attributes:
        task, label, model: the unit.
        pilot: how many samples were run.
        errors: how many of them failed; what they used is counted.
        runs: of the whole: samples times epochs.
        tokens: all tokens.
        input_tokens, output_tokens: those that go in (from and into caches included) and come out.
        cost: dollars; None when a model has no price.
        seconds: with ``at_once`` samples at a time, were each to take as long as in the pilot.
        at_once: samples.
        location: the pilot's log.
    """

    task: str
    label: str
    model: str
    pilot: int
    errors: int
    runs: int
    tokens: Amount
    input_tokens: Amount
    output_tokens: Amount
    cost: Amount | None
    seconds: Amount
    at_once: int
    location: str


def pilot(unit: Unit, size: int) -> Unit:
    """``unit`` with a few of its samples, from all over its dataset, each run once.

    Raises:
        UsageError: the number of samples is not known.
    """
    samples = unit.samples
    length = samples.length
    if length is None or isinstance(samples.dataset, IterableDataset):
        raise UsageError(
            f"task {unit.name!r} makes its samples one by one, so what all of them would take can't be estimated: "
            "leave --estimate out, and bound the run with --max-cost or --limit"
        )
    # The middles of so many equal parts.
    places = range(length) if size >= length else [(2 * part + 1) * length // (2 * size) for part in range(size)]
    chosen = Selection(samples.dataset, [samples.place(index) for index in places])
    return replace(unit, samples=chosen, epochs=1, total=len(places), reducers=None)


def unit_estimate(unit: Unit, log: EvalLog) -> UnitEstimate:
    """What the whole of ``unit`` would take, by the log of its pilot; reads the samples' summaries."""
    done = read_eval_log_sample_summaries(log.location)
    runs = (unit.total or 0) or len(done)
    usages = [list(sample.model_usage.values()) for sample in done]
    priced = all(usage.total_cost is not None for used in usages for usage in used)
    sizes = unit.max_samples or unit.connections.samples()
    at_once = max(1, min(sizes, runs))
    seconds = estimate_total([sample.total_time or 0.0 for sample in done], runs)

    def total(field: str) -> Amount:
        return estimate_total([float(sum(getattr(usage, field) for usage in used)) for used in usages], runs)

    return UnitEstimate(
        task=unit.name,
        label=unit.label,
        model=unit.model.name,
        pilot=len(done),
        errors=sum(_failed(sample) for sample in done),
        runs=runs,
        tokens=total("total_tokens"),
        input_tokens=total("all_input_tokens"),
        output_tokens=total("output_tokens"),
        cost=estimate_total([sum(usage.total_cost or 0.0 for usage in used) for used in usages], runs)
        if priced and any(usages)
        else None,
        seconds=Amount(seconds.value / at_once, seconds.low / at_once, seconds.high / at_once),
        at_once=at_once,
        location=log.location,
    )


def _failed(sample: EvalSampleSummary) -> bool:
    return sample.error is not None


def estimate_total(values: Sequence[float], runs: int) -> Amount:
    """The total of ``runs`` runs of which ``values`` were measured; see the formula at the head of this file.

    What was measured is certain, so the interval never goes below it.
    """
    count = len(values)
    if not count:
        return Amount(0.0, 0.0, math.inf)
    value = runs * fmean(values)
    if count >= runs:
        return Amount(value, value, value)
    if count == 1:
        return Amount(value, sum(values), math.inf)
    error = runs * stdev(values) / math.sqrt(count) * math.sqrt(1 - count / runs)
    margin = _student(count - 1) * error
    return Amount(value, max(math.fsum(values), value - margin), value + margin)


def _student(freedom: int) -> float:
    """The 0.975 quantile of Student's t; beyond 2 degrees by Abramowitz and Stegun, 26.7.5, good to 0.1 %."""
    p = 0.975
    if freedom == 1:
        return math.tan(math.pi * (p - 0.5))
    if freedom == 2:
        return (2 * p - 1) / math.sqrt(2 * p * (1 - p))
    z = NormalDist().inv_cdf(p)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))

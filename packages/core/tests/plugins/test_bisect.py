"""``proctor plugins doctor --bisect`` finds what slows every start."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from proctor.cli._plugins import plugins
from proctor.contracts import UsageError
from proctor.plugins._bisect import THRESHOLD, culprits
from proctor.plugins._manager import Manager

STARTS = """
from proctor.hookspecs import hookimpl

@hookimpl
def proctor_startup(context):
    {body}
"""


@given(st.lists(st.booleans(), max_size=60))
def test_exactly_those_that_are_slow_are_found_in_few_measurements(slow: list[bool]) -> None:
    # given plugins of which some add a second to a start, and the others a millisecond in all
    names = [f"plugin-{number}" for number in range(len(slow))]
    seconds = {name: 1.0 if is_slow else 0.001 / len(slow) for name, is_slow in zip(names, slow, strict=True)}
    measured: list[Sequence[str]] = []

    def cost(chosen: Sequence[str]) -> float:
        measured.append(chosen)
        return sum(seconds[name] for name in chosen)

    found = culprits(names, cost)

    assert [name for each in found for name in each.distributions] == [name for name in names if seconds[name] == 1.0]
    assert all(len(each.distributions) == 1 for each in found)
    assert len(measured) <= 1 + 2 * sum(slow) * len(slow).bit_length()


def test_what_is_slow_together_is_named_together() -> None:
    found = culprits(["a", "b", "c", "d"], lambda chosen: THRESHOLD * 0.4 * len(chosen))

    assert [each.distributions for each in found] == [("a", "b", "c", "d")]


def test_two_that_share_a_slow_import_are_both_found() -> None:
    # given two plugins that import the same heavy library: whichever is there pays for it
    found = culprits(["a", "b", "c", "d"], lambda chosen: 1.0 if {"a", "d"} & set(chosen) else 0.0)

    assert [each.distributions for each in found] == [("a",), ("d",)]


@pytest.mark.slow
def test_the_one_at_fault_is_found_in_real_starts(
    manager: Callable[..., Manager], distribution: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def starter(name: str, body: str) -> Path:
        entries = {"proctor.startup": {name: f"{name.replace('-', '_')}.hooks"}}
        return distribution(name, STARTS.format(body=body), entries=entries)

    quick = [starter(f"acme-quick-{number}", "pass") for number in range(3)]
    slow = starter("acme-slow", "import time; time.sleep(3)")
    monkeypatch.setattr("proctor.plugins._bisect.THRESHOLD", 1.0)  # far above the noise of a busy machine

    start = manager(*quick, slow).measure_startup()

    assert [each.distributions for each in start.slow] == [("acme-slow",)]
    assert start.seconds > start.without
    # and switched off it is not looked at any more
    assert manager(*quick, slow, disabled=["acme-slow"]).measure_startup().slow == ()


def test_a_start_that_ends_the_process_is_said(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    body = STARTS.format(body="import os; os._exit(7)")
    root = distribution("acme-exits", body, entries={"proctor.startup": {"acme": "acme_exits.hooks"}})

    with pytest.raises(UsageError, match="ended with exit code 7"):
        manager(root).measure_startup()


@pytest.mark.slow
def test_the_command_says_what_a_start_costs() -> None:
    arguments = ["doctor", "proctor-core", "--bisect"]

    text = CliRunner().invoke(plugins, arguments, standalone_mode=False).output
    report = json.loads(CliRunner().invoke(plugins, [*arguments, "--json"], standalone_mode=False).output)

    assert "start-up: " in text
    assert "ms of them without plugins" in text
    assert set(report["startup"]) == {"seconds", "without", "slow"}

"""Two `proctor eval` processes that share one provider's limits, seen from the provider's side."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from child_processes import running

from proctor_testkit import FakeOpenAI

LATENCY = 0.02  # seconds of an answer
PATIENCE = 60  # seconds in which what is waited for happens, or the test fails
WINDOW = 2.0  # seconds in which requests are counted

# Samples without end: the run goes on for as long as somebody looks.
ASKS = """\
import itertools

from proctor import Task, task
from proctor.dataset import IterableDataset, Sample


@task
def asks(who: str):
    return Task(dataset=IterableDataset(lambda: (Sample(input=f"{who} asks") for _ in itertools.count())))
"""


class Provider:
    """What a provider sees: who has how many requests in flight, who was answered, and when requests came."""

    def __init__(self, server: FakeOpenAI) -> None:
        self.server = server
        self.in_flight: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.peak = 0
        self.together = 0
        self.came: list[float] = []
        self._change = threading.Condition()
        server.reply(self._reply)

    async def _reply(self, body: dict[str, Any]) -> dict[str, Any]:
        who = str(body["messages"][-1]["content"]).partition(" ")[0]
        with self._change:
            self.came.append(time.monotonic())
            self.in_flight[who] += 1
            self.most[who] = max(self.most[who], self.in_flight[who])
            self.peak = max(self.peak, self.in_flight.total())
            self.together += min(self.in_flight["first"], self.in_flight["second"]) > 0
            self._change.notify_all()
        await asyncio.sleep(LATENCY)
        with self._change:
            self.in_flight[who] -= 1
            self.answered[who] += 1
            self._change.notify_all()
        return self.server.answer("yes")

    def wait(self, until: Callable[[], bool]) -> bool:
        """Block until it is so; False when it did not come to that."""
        with self._change:
            return self._change.wait_for(until, PATIENCE)

    def forget(self) -> None:
        """Count the most from now on."""
        with self._change:
            self.most.clear()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with FakeOpenAI() as server:
        yield Provider(server)


@pytest.fixture
def start(provider: Provider, tmp_path: Path) -> Callable[..., Any]:
    """``with start("first", *options) as process``: a run that asks for ever."""
    (tmp_path / "asks.py").write_text(ASKS, encoding="utf-8")
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)

    @contextmanager
    def start(who: str, *options: str, **variables: str) -> Iterator[subprocess.Popen[Any]]:
        command = [sys.executable, "-m", "proctor", "eval", "asks.py", "--model", "openai/gpt-4o-mini", "-T"]
        arguments = [f"who={who}", "--display", "none", "--no-log-samples", "--log-dir", f"logs-{who}", *options]
        env = os.environ | {
            "OPENAI_API_KEY": "sk-test-1f2e3d4c5b6a",
            "OPENAI_BASE_URL": provider.server.base_url,
            "XDG_RUNTIME_DIR": str(runtime),
            **variables,
        }
        with (
            (tmp_path / f"{who}.txt").open("w") as output,
            running([*command, *arguments], cwd=tmp_path, env=env, stdout=output, stderr=output) as process,
        ):
            yield process

    return start


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_two_runs_keep_one_limit_and_the_end_of_one_frees_its_places(
    start: Callable[..., Any], provider: Provider, backend: str
) -> None:
    options = ("--max-connections", "6", "--async-backend", backend)
    with start("first", *options, "--share", "team") as first, start("second", *options, PROCTOR_SHARE="team"):
        assert provider.wait(lambda: min(provider.answered["first"], provider.answered["second"]) >= 60)
        assert provider.peak == 6
        assert provider.together > 0

        os.kill(first.pid, signal.SIGKILL)
        first.wait(PATIENCE)
        provider.forget()
        assert provider.wait(lambda: provider.most["second"] == 6)
        answered = provider.answered["second"]
        assert provider.wait(lambda: provider.answered["second"] >= answered + 60)
        assert provider.most["second"] == 6


def test_a_run_that_is_alone_or_has_another_name_has_all_places_for_itself(
    start: Callable[..., Any], provider: Provider
) -> None:
    with start("first", "--max-connections", "6", "--share", "team"), start("second", "--max-connections", "6"):
        assert provider.wait(lambda: provider.peak == 12)


def test_two_runs_spend_one_budget_of_requests(start: Callable[..., Any], provider: Provider) -> None:
    budget = 600  # a minute
    options = ("--max-connections", "10", "--max-rpm", str(budget), "--share", "team")
    with start("first", *options), start("second", *options):
        assert provider.wait(lambda: min(provider.answered["first"], provider.answered["second"]) >= 1)
        since = len(provider.came)
        assert provider.wait(lambda: len(provider.came) >= since + 50)
        came = provider.came[since:]

    allowed = budget / 60 * WINDOW
    busiest = max(sum(start <= other < start + WINDOW for other in came) for start in came)
    assert allowed / 2 < busiest < allowed * 1.5, "two budgets would be twice as many"
    assert provider.answered["first"] >= 5 and provider.answered["second"] >= 5

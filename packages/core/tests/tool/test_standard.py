"""The standard tools, in a real local sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from scripted_tools import answers, call, run_calls

from proctor.concurrency import kill_groups
from proctor.sandbox import LocalSandbox, sandbox_context
from proctor.tool import Tool, bash, python, think, tool_info

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
async def in_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    # The tools use login shells: the profile of whoever runs the tests is slow, and must not be killed half-way.
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with sandbox_context({"default": LocalSandbox(tmp_path), "other": LocalSandbox(tmp_path / "..")}):
        yield


async def answer(tool: Tool, **arguments: str) -> str:
    [message] = answers(await run_calls([tool], call(tool_info(tool).name, **arguments)))
    assert message.error is None
    return message.text


async def test_bash_shows_errors_first_then_output() -> None:
    assert await answer(bash(), command="echo out; echo err >&2; exit 3") == "err\n\nout\n"
    assert await answer(bash(), command="exit 4") == ""


async def test_python_shows_what_is_printed() -> None:
    assert await answer(python(), code="print(1 + 1)\n2 + 2") == "2\n"
    assert "ValueError: no" in await answer(python(), code="raise ValueError('no')")


async def test_a_tool_runs_in_the_sandbox_that_it_was_made_for(tmp_path: Path) -> None:
    assert await answer(bash(), command="pwd") == f"{tmp_path}\n"
    assert await answer(bash(sandbox="other"), command="pwd") == f"{tmp_path.parent}\n"


async def test_a_command_that_takes_too_long_is_told_to_the_model() -> None:
    [message] = answers(await run_calls([bash(timeout=0.2)], call("bash", command="sleep 60")))
    assert message.error is not None and message.error.type == "timeout"


async def test_a_command_that_leaves_a_child_is_answered_when_it_ends(tmp_path: Path) -> None:
    box = LocalSandbox(tmp_path)
    with sandbox_context({"default": box}):
        try:
            assert await answer(bash(timeout=60), command="sleep 600 & echo started") == "started\n"
        finally:
            await kill_groups(box.background)


async def test_thinking_changes_nothing() -> None:
    assert await answer(think(), thought="hm") == ""

"""What becomes of the tool calls of a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from scripted_tools import answers, call, calling, one_tool, run_calls

from proctor.contracts import OutputLimitExceededError
from proctor.limits import LimitExceededError
from proctor.log import Transcript, use_transcript
from proctor.schema import ContentImage, ContentText, SpanBeginEvent, ToolCall, ToolCallContent, ToolEvent
from proctor.tool import Tool, ToolCallView, ToolDef, ToolError, execute_tools

pytestmark = pytest.mark.anyio


def returns(value: Any, **settings: Any) -> Tool:
    async def body(x: str) -> Any:
        return value

    return one_tool(body, **settings)


def raises(error: BaseException) -> Tool:
    async def body(x: str) -> Any:
        raise error

    return one_tool(body)


async def test_a_message_without_calls_has_nothing_to_run() -> None:
    assert await execute_tools([], []) == ([], None)
    assert await execute_tools(calling()[:1], []) == ([], None)
    assert await execute_tools(calling(), []) == ([], None)


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("s", "s"),
        (1, "1"),
        (True, "True"),
        (None, "None"),
        ({"a": 1}, "{'a': 1}"),
        (["a"], "['a']"),
        (ContentText(text="a"), [ContentText(text="a")]),
        ([ContentImage(image="http://x")], [ContentImage(image="http://x")]),
    ],
)
async def test_results_become_content(value: Any, content: Any) -> None:
    [answer] = answers(await run_calls([returns(value)], call("t")))
    assert (answer.content, answer.error, answer.tool_call_id, answer.function) == (content, None, "1", "t")


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (ToolError("try again"), "unknown", "try again"),
        (TimeoutError("whatever"), "timeout", "timed out"),
        (PermissionError(13, "Permission denied", "/x"), "permission", "Permission denied: '/x'"),
        (FileNotFoundError(2, "No such file", "/y"), "file_not_found", "'/y' was not found"),
        (IsADirectoryError(21, "Is a directory", "/d"), "is_a_directory", "Is a directory: '/d'"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "unicode_decode", "utf-8: bad"),
        (OutputLimitExceededError("10 MiB", "part"), "limit", "10 MiB"),
    ],
)
async def test_the_model_is_told_of_failures_that_it_can_mend(error: Exception, kind: str, words: str) -> None:
    [answer] = answers(await run_calls([raises(error)], call("t")))
    assert answer.error is not None
    assert answer.error.type == kind
    assert words in answer.error.message
    assert answer.content == ("part" if kind == "limit" else "")


@pytest.mark.parametrize("error", [ValueError("v"), OSError("o"), LimitExceededError("token", value=2, limit=1)])
async def test_other_failures_end_the_sample(error: Exception) -> None:
    with pytest.raises(type(error)):
        await run_calls([raises(error)], call("t"))


async def test_a_call_that_could_not_be_parsed_or_has_no_tool_is_answered() -> None:
    broken = ToolCall(id="2", function="t", arguments={}, parse_error="no JSON")
    first, second = answers(await run_calls([returns("ok")], call("nope"), broken))
    assert first.error is not None and "no tool named 'nope'" in first.error.message
    assert second.error is not None and second.error.message == "no JSON"


async def test_every_call_is_answered_in_order() -> None:
    result = await run_calls([returns("ok")], call("t", id="a"), call("gone", id="b"), call("t", id="c"))
    assert [answer.tool_call_id for answer in answers(result)] == ["a", "b", "c"]


async def _order(parallel: bool | None) -> list[str]:
    """What happens in which order when the first of two calls waits for the second to begin (if it may)."""
    seen: list[str] = []
    second = anyio.Event()

    async def body(x: str) -> str:
        seen.append(f"begin {x}")
        if x == "1" and parallel:
            await second.wait()
        elif x == "2":
            second.set()
        await anyio.lowlevel.checkpoint()
        seen.append(f"end {x}")
        return x

    tool = one_tool(body, parallel=parallel)
    result = await run_calls([tool], call("t", id="a", x="1"), call("t", id="b", x="2"))
    assert [answer.content for answer in answers(result)] == ["1", "2"]
    return seen


async def test_calls_run_one_after_the_other_unless_their_tools_are_parallel() -> None:
    assert await _order(None) == ["begin 1", "end 1", "begin 2", "end 2"]
    assert await _order(False) == ["begin 1", "end 1", "begin 2", "end 2"]
    assert sorted((await _order(True))[:2]) == ["begin 1", "begin 2"]


async def test_a_parallel_call_that_fails_stops_the_others() -> None:
    stopped: list[str] = []

    async def body(x: str) -> str:
        if x == "bad":
            raise ValueError("bad")
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(x)
        return x

    tool = one_tool(body, parallel=True)
    with pytest.raises(ValueError, match="bad"):
        await run_calls([tool], call("t", id="a", x="slow"), call("t", id="b", x="bad"))
    assert stopped == ["slow"]


@pytest.mark.parametrize(("limit", "own", "shown"), [(30, None, 30), (None, 40, 40), (30, 40, 40), (0, None, 100)])
async def test_long_output_loses_its_middle(limit: int | None, own: int | None, shown: int) -> None:
    text = "".join(f"{number:02}" for number in range(50))
    [answer] = answers(await run_calls([returns(text, max_output=own)], call("t"), max_output=limit))
    assert isinstance(answer.content, str)
    if shown == 100:
        assert answer.content == text
    else:
        assert f"\n{text[: shown // 2]}{text[-shown // 2 :]}\n" in answer.content
        assert len(answer.content) < shown + 200


async def test_output_is_cut_between_characters() -> None:
    [answer] = answers(await run_calls([returns("é" * 100)], call("t"), max_output=31))
    assert "é" * 15 in answer.content and "�" not in answer.content


async def test_calls_are_recorded_in_spans() -> None:
    with use_transcript(Transcript()) as transcript:
        await run_calls([returns("x" * 100)], call("t", x="in"), max_output=10)
        with pytest.raises(ValueError, match="boom"):
            await run_calls([raises(ValueError("boom"))], call("t"))
    spans = [event for event in transcript.events if isinstance(event, SpanBeginEvent)]
    done, failed = [event for event in transcript.events if isinstance(event, ToolEvent)]
    assert [(span.name, span.type) for span in spans] == [("t", "tool"), ("t", "tool")]
    assert (done.span_id, done.arguments, done.truncated) == (spans[0].id, {"x": "in"}, (100, 10))
    assert done.completed is not None and done.pending is None and done.failed is None
    assert failed.failed is True and failed.error is not None and "boom" in failed.error.message


async def test_tool_sources_are_asked_when_calls_are_run() -> None:
    class Source:
        async def tools(self) -> Sequence[Tool]:
            return [returns("from source", name="s")]

    [answer] = answers(await execute_tools(calling(call("s")), Source()))
    assert answer.content == "from source"
    [answer] = answers(await execute_tools(calling(call("s")), [returns("t"), Source()]))
    assert answer.content == "from source"


async def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two tools are named 't'"):
        await run_calls([returns(1), returns(2, description="Another.")], call("t"))


async def test_one_tool_given_twice_is_one_tool() -> None:
    tool = returns(1)
    [answer] = answers(await run_calls([tool, tool], call("t")))
    assert answer.content == "1"


async def test_a_viewer_says_how_a_call_is_shown_and_may_fail() -> None:
    def view(call: ToolCall) -> ToolCallView:
        return ToolCallView(call=ToolCallContent(title=call.arguments["x"]))

    tool = returns("ok", viewer=view)
    with use_transcript(Transcript()) as transcript:
        await run_calls([tool], call("t", x="shown"), call("t", id="2"))
    first, second = [event for event in transcript.events if isinstance(event, ToolEvent)]
    assert first.view is not None and first.view.title == "shown"
    assert second.view is None


async def test_definitions_can_be_given_for_tools() -> None:
    async def hello(name: str) -> str:
        return f"hello {name}"

    definition = ToolDef(hello, description="Greet.", parameters={"name": "Who."})
    [answer] = answers(await execute_tools(calling(call("hello", name="you")), [definition]))
    assert answer.content == "hello you"

"""The standard tools that run a model's code in the sample's sandbox, and a place for it to think."""

from __future__ import annotations

from proctor.contracts import ExecResult
from proctor.sandbox import sandbox as sandbox_named
from proctor.schema import ToolCall, ToolCallContent
from proctor.tool._tool import Tool, ToolCallView, ToolCallViewer, tool

__all__ = ["bash", "python", "think"]


def _code_viewer(language: str, parameter: str) -> ToolCallViewer:
    def view(call: ToolCall) -> ToolCallView:
        code = str(call.arguments.get(parameter, "")).strip()
        content = f"```{language}\n{code}\n```\n"
        return ToolCallView(call=ToolCallContent(title=language, format="markdown", content=content))

    return view


def _output(result: ExecResult[str]) -> str:
    return f"{result.stderr}\n{result.stdout}" if result.stderr else result.stdout


@tool(viewer=_code_viewer("bash", "command"))
def bash(timeout: float | None = None, user: str | None = None, sandbox: str | None = None) -> Tool:
    """A tool that runs commands in a login shell of the sandbox.

    A call ends with its command; what that leaves in the background goes on for later calls.
    The model sees what went to standard error, then what went to standard output.

    Args:
        timeout: seconds that a command may take.
        user: the user to run as.
        sandbox: the sandbox to run in, when the sample has several.
    """

    async def execute(command: str) -> str:
        """Run a command in a bash shell.

        A process that is to go on in the background must write to a file: `server > server.log 2>&1 &`.

        Args:
            command: The command line to run.
        """
        return _output(
            await sandbox_named(sandbox).exec(["bash", "--login", "-c", command], timeout=timeout, user=user)
        )

    return execute


@tool(viewer=_code_viewer("python", "code"))
def python(timeout: float | None = None, user: str | None = None, sandbox: str | None = None) -> Tool:
    """A tool that runs Python scripts in the sandbox.

    The model sees what went to standard error, then what went to standard output.

    Args:
        timeout: seconds that a script may take.
        user: the user to run as.
        sandbox: the sandbox to run in, when the sample has several.
    """

    async def execute(code: str) -> str:
        """Run a Python script.

        Every script starts afresh: variables and imports of earlier ones are gone. Only what is printed is shown, so
        call print() for each result that you need; the value of a bare expression is not shown. A script can't ask
        for input.

        Args:
            code: The script to run.
        """
        return _output(
            await sandbox_named(sandbox).exec(
                ["bash", "--login", "-c", "python3 -"], input=code, timeout=timeout, user=user
            )
        )

    return execute


@tool
def think() -> Tool:
    """A tool that does nothing but give the model a place to think between other calls."""

    async def execute(thought: str) -> str:
        """Note down a thought, when a problem needs reasoning in between. Nothing is looked up and nothing changes.

        Args:
            thought: The thought.
        """
        return ""

    return execute

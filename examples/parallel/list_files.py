"""A tool that runs a command, and says so when it takes too long.

    proctor eval examples/parallel/list_files.py --model openai/gpt-5 -T folder=.

`subprocess()` is Proctor's own: it holds a place at the run's gate of subprocesses (`--max-subprocesses`) and runs on
asyncio and on trio; when it raises `TimeoutError`, the command and all that it started are gone.
"""

from __future__ import annotations

from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes
from proctor.solver import generate, use_tools
from proctor.tool import Tool, ToolError, tool
from proctor.util import subprocess


@task
def read_the_folder(folder: str = ".", file: str = "README.md", seconds: float = 10) -> Task:
    """Whether a model finds a file by looking.

    Args:
        folder: where it looks.
        file: a file that is there.
        seconds: how long a look may take.
    """
    return Task(
        dataset=[Sample(input=f"Which files are in the folder {folder}? Name all of them.", target=file)],
        solver=[use_tools(list_files(seconds)), generate()],
        scorer=includes(),
    )


@tool
def list_files(seconds: float = 10) -> Tool:
    """A look at a folder.

    Args:
        seconds: how long it may take.
    """

    async def execute(folder: str) -> str:
        """List the files of a folder.

        Args:
            folder: path of the folder.
        """
        try:
            result = await subprocess(["ls", folder], timeout=seconds)
        except TimeoutError:
            raise ToolError(f"listing {folder} took more than {seconds:g} seconds") from None
        if not result.success:
            raise ToolError(result.stderr)
        return str(result.stdout)

    return execute

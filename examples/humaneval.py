"""HumanEval: 164 Python functions to write, each checked by running its tests (see data/human_eval.LICENSE).

    proctor eval examples/humaneval.py --model openai/gpt-5 --limit 20
    proctor eval examples/humaneval.py --model openai/gpt-5 -T sandbox=docker --epochs 5 --epochs-reducer pass_at_1

The model's code runs in the task's sandbox. The default one, `local`, is a temporary directory of this machine, where
the code may do all that you may do. Name a sandbox that confines it for a model that you don't trust.

Source: Chen et al., "Evaluating Large Language Models Trained on Code", 2021.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from proctor import Task, task
from proctor.dataset import Sample, json_dataset
from proctor.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer, stderr
from proctor.solver import TaskState, generate, prompt_template
from proctor.util import OutputLimitExceededError, sandbox

PROBLEMS = Path(__file__).parent / "data" / "human_eval.jsonl"
INSTRUCTION = """\
Complete this Python function. Reply with the whole function, its signature included, in one ```python block.

```python
{prompt}```
"""
BLOCK = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
SECONDS = 20


def to_sample(record: dict[str, Any]) -> Sample:
    """A problem as a sample; what the tests need is in its metadata."""
    return Sample(
        id=record["task_id"],
        input=record["prompt"],
        target=record["canonical_solution"],
        metadata={name: record[name] for name in ("prompt", "test", "entry_point")},
    )


@task
def humaneval(sandbox: str = "local") -> Task:
    """Functions from their docstrings.

    Args:
        sandbox: where the model's code runs: ``local``, or the name of an installed sandbox such as ``docker``.
    """
    return Task(
        dataset=json_dataset(PROBLEMS, to_sample),
        solver=[prompt_template(INSTRUCTION), generate()],
        scorer=passes_tests(),
        sandbox=sandbox,
    )


def program(completion: str, prompt: str, entry_point: str) -> str:
    """The code in a reply, made whole.

    A reply that defines the function keeps what stands above it in the prompt (imports and helpers); any other is taken
    for what follows the prompt.
    """
    blocks = BLOCK.findall(completion)
    with_function = [block for block in blocks if f"def {entry_point}(" in block]
    code: str = (with_function or blocks or [completion])[0]
    if f"def {entry_point}(" not in code:
        return prompt + code
    above = prompt[: prompt.rindex(f"def {entry_point}(")]
    return above + "\n" + code


@scorer(metrics=[accuracy(), stderr()])
def passes_tests() -> Scorer:
    """Whether the problem's tests pass, within 20 seconds."""

    async def score(state: TaskState, target: Target) -> Score:
        about = state.metadata
        code = program(state.output.completion, about["prompt"], about["entry_point"])
        # The tests are given on standard input, so nothing has to be written, and nothing is left.
        tests = f"{code}\n\n{about['test']}\n\ncheck({about['entry_point']})\n"
        try:
            result = await sandbox().exec(["python3", "-"], input=tests, timeout=SECONDS)
        except TimeoutError:
            return Score(value=INCORRECT, answer=code, explanation=f"not done after {SECONDS} seconds")
        except OutputLimitExceededError as error:
            return Score(value=INCORRECT, answer=code, explanation=str(error))
        value = CORRECT if result.success else INCORRECT
        return Score(value=value, answer=code, explanation=result.stderr.strip()[-2000:] or "all tests passed")

    return score

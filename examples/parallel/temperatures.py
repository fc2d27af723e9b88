"""Six temperatures on two models in one `eval()`: twelve logs, at most five of them in the making at once.

python examples/parallel/temperatures.py                                       # mock models, to see that it works
python examples/parallel/temperatures.py --model openai/gpt-5,openai/gpt-4.1
"""

from __future__ import annotations

import argparse

from proctor import Task, eval, task
from proctor.dataset import Sample
from proctor.model import GenerateConfig
from proctor.schema import EvalLog
from proctor.scorer import includes

TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@task
def colours(temperature: float = 0.0) -> Task:
    """Colours of things.

    Args:
        temperature: of the sampling.
    """
    return Task(
        dataset=[
            Sample(input="What colour is a ripe banana?", target="yellow"),
            Sample(input="What colour is an emerald?", target="green"),
        ],
        scorer=includes(),
        config=GenerateConfig(temperature=temperature),
    )


def main(arguments: list[str] | None = None) -> list[EvalLog]:
    """Run the twelve and print a line for each."""
    parser = argparse.ArgumentParser(description="How accuracy depends on the temperature, for several models.")
    parser.add_argument("--model", default="mock/a,mock/b", help="models, separated by commas (default: %(default)s)")
    parser.add_argument("--log-dir", default=None, help="where the logs go (default: ./logs)")
    parser.add_argument("--display", default=None, help="rich, plain or none (default: what suits the terminal)")
    given = parser.parse_args(arguments)

    logs = eval(
        [colours(temperature) for temperature in TEMPERATURES],
        model=given.model.split(","),
        max_tasks=5,
        log_dir=given.log_dir,
        display=given.display,
    )
    for log in logs:
        accuracy = log.results.scores[0].metrics["accuracy"].value if log.results else float("nan")
        print(f"{log.eval.model}   {log.eval.task_args}   accuracy {accuracy:.2f}   {log.status}")
    return logs


if __name__ == "__main__":
    main()

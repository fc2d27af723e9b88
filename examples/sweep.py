"""Six temperatures in one `eval()`: one log each, all running at once.

python examples/sweep.py                                    # a mock model, to see that it works
python examples/sweep.py --model llamacpp/smollm2-135m
"""

from __future__ import annotations

import argparse

from proctor import Task, eval, task
from proctor.dataset import Sample
from proctor.model import GenerateConfig
from proctor.scorer import includes

TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
CAPITALS = {"France": "Paris", "Italy": "Rome", "Japan": "Tokyo", "Egypt": "Cairo", "Norway": "Oslo"}


@task
def capitals(temperature: float = 0.0) -> Task:
    """Capitals of countries.

    Args:
        temperature: of the sampling.
    """
    return Task(
        dataset=[
            Sample(id=country, input=f"What is the capital of {country}? Answer in one word.", target=capital)
            for country, capital in CAPITALS.items()
        ],
        scorer=includes(),
        config=GenerateConfig(temperature=temperature, seed=1, max_tokens=32),
    )


def main(arguments: list[str] | None = None) -> list[tuple[float, float]]:
    """Run the sweep, print a table, and return each temperature with its accuracy."""
    parser = argparse.ArgumentParser(description="How accuracy depends on the temperature.")
    parser.add_argument("--model", default="mock/model", help="provider/model (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=4, help="how often each question is asked (default: %(default)s)")
    parser.add_argument("--log-dir", default=None, help="where the logs go (default: ./logs)")
    parser.add_argument("--display", default=None, help="rich, plain or none (default: what suits the terminal)")
    given = parser.parse_args(arguments)
    options = {name: value for name, value in vars(given).items() if name != "model" and value is not None}

    tasks = [capitals(temperature) for temperature in TEMPERATURES]
    logs = eval(tasks, model=given.model, max_tasks=len(tasks), **options)

    rows = []
    for temperature, log in zip(TEMPERATURES, logs, strict=True):
        accuracy = log.results.scores[0].metrics["accuracy"].value if log.results else float("nan")
        rows.append((temperature, accuracy))
        print(f"temperature {temperature:.1f}   accuracy {accuracy:.2f}   {log.status}   {log.location}")
    return rows


if __name__ == "__main__":
    main()

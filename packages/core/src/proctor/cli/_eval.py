"""``proctor eval``: run tasks, show the scores, and say by the exit code how it went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from proctor.cli._output import print_json, print_report, unit_name
from proctor.cli._params import EvalCommand, eval_parameters
from proctor.cli._running import (
    CONTEXT,
    EPILOG,
    at_once,
    common_parameters,
    for_machines,
    merged_options,
    own_output,
    tasks_argument,
)
from proctor.contracts import UsageError

if TYPE_CHECKING:
    from proctor.engine import RunResult, Unit

__all__ = ["eval_command", "parse_eval"]

_EXAMPLES = """\b
Examples:
  proctor eval arithmetic.py --model openai/gpt-5 --limit 20
  proctor eval quiz.py@history --model openai/gpt-5,mock/model --epochs 3
  proctor eval quiz.py -T subject=astronomy --model mock/model -M latency=0.1

\b
Each option has an environment variable: PROCTOR_EVAL_ and its name in
capitals (PROCTOR_EVAL_MAX_TOKENS), unless another stands in [brackets].
"""


def _run(tasks: Sequence[str], as_json: bool, **given: Any) -> int:
    options = merged_options(given)
    if not tasks:
        raise UsageError(
            "no task was named. Give a file, a folder, file.py@task or package/task: "
            "`proctor eval FILE --model PROVIDER/MODEL`. `proctor list tasks` shows the tasks of this folder."
        )
    if as_json:
        for_machines(options, given)
    from proctor.engine import run

    with own_output(as_json):
        result = run(
            list(tasks), options.pop("model", None), options, last=partial(at_once, partial(_show, options, as_json))
        )
    return _show(options, as_json, result)


def _show(options: Mapping[str, Any], as_json: bool, result: RunResult) -> int:
    """Print what the run came to, and return the exit code."""
    if as_json:
        from proctor.cli._summary import plan_facts, summary_facts

        ended = result.logs, result.exit_code, result.estimates
        print_json(plan_facts(result.units) if options.get("dry_run") else summary_facts(*ended))
    elif options.get("dry_run"):
        _show_plan(result.units)
    elif result.estimates:
        from proctor.cli._estimate import estimate_text

        for line in estimate_text(result.estimates):
            click.echo(line)
    elif options.get("display") == "none":
        print_report(result.logs)
    return result.exit_code


def _show_plan(units: Sequence[Unit]) -> None:
    from proctor.display import plural

    click.echo(f"This would run {plural(len(units), 'unit')} (a task with a model):")
    for unit in units:
        samples = "samples of unknown number" if unit.total is None else plural(unit.total, "sample")
        epochs = f" ({unit.epochs} epochs)" if unit.epochs > 1 else ""
        click.echo(f"  {unit_name(unit)} · {samples}{epochs} · {unit.id}")


def parse_eval(argv: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """What arguments of ``proctor eval`` stand for: tasks, and options of ``eval()``; the environment is left out.

    Raises:
        UsageError: for what ``proctor eval`` would refuse.
    """
    try:
        context = eval_command.make_context("proctor eval", list(argv))
    except click.ClickException as error:
        raise UsageError(error.format_message()) from None
    given = dict(context.params)
    tasks = list(given.pop("tasks"))
    given.pop("as_json")
    return tasks, {key: value for key, value in given.items() if value is not None}


eval_command = EvalCommand(
    name="eval",
    callback=_run,
    help="Evaluate TASKS: files, folders, file.py@task or package/task.\n\n" + _EXAMPLES,
    epilog=EPILOG,
    params=[tasks_argument(), *eval_parameters(), *common_parameters()],
    context_settings=dict(CONTEXT),
)

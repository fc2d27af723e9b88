"""``proctor eval-set``: run tasks until all of them are complete; called again, it goes on where it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from proctor.cli._output import print_json, print_report
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
    from proctor.sets import SetPlan, SetResult

__all__ = ["eval_set_command"]

_EXAMPLES = """\b
Examples:
  proctor eval-set arithmetic.py quiz.py --model openai/gpt-5,mock/model --log-dir logs/set
  proctor eval-set quiz.py --model mock/model --log-dir logs/set --dry-run

\b
The folder holds one set. What is complete in it is kept, what is not is gone
on with, sample by sample; what fails is tried again as soon as its wait is
over, while the others run. The same command again goes on where it stopped.
"""


def _run(tasks: Sequence[str], as_json: bool, **given: Any) -> int:
    options = merged_options(given)
    if not tasks:
        raise UsageError(
            "no task was named. Give files, folders, file.py@task or package/task: "
            "`proctor eval-set FILE... --model PROVIDER/MODEL --log-dir DIR`."
        )
    if as_json:
        for_machines(options, given)
    dry = bool(options.get("dry_run"))
    shown: list[SetPlan] = []

    def show(plan: SetPlan) -> None:
        shown.append(plan)
        if not as_json:
            from proctor.cli._set_plan import plan_lines

            for line in plan_lines(plan):
                click.echo(line)

    def show_end(result: SetResult) -> int:
        if as_json:
            print_json(_facts(result.plan, result))
        elif not dry:
            _show_end(result, report=options.get("display") == "none")
        return result.exit_code

    from proctor.sets import run_set

    last = partial(at_once, show_end)
    try:
        with own_output(as_json):
            result = run_set(list(tasks), options.pop("model", None), options, show=show, last=last)
    except UsageError:
        if dry and as_json and shown:  # a plan that would be refused is what a dry run is asked for
            print_json(_facts(shown[0], None))
        raise
    return show_end(result)


def _show_end(result: SetResult, *, report: bool) -> None:
    if report:
        print_report(result.logs)
    if result.cleaned:
        from proctor.display import plural

        click.echo(f"deleted {plural(len(result.cleaned), 'log')} of earlier attempts: the newest have all samples")


def _facts(plan: SetPlan, result: SetResult | None) -> dict[str, Any]:
    from proctor.cli._set_plan import set_plan_facts
    from proctor.cli._summary import set_facts

    return set_facts(set_plan_facts(plan), result)


eval_set_command = EvalCommand(
    name="eval-set",
    callback=_run,
    help="Evaluate TASKS on models until all are complete, in a folder that holds the set.\n\n" + _EXAMPLES,
    epilog=EPILOG,
    params=[tasks_argument(), *eval_parameters(eval_set=True), *common_parameters()],
    context_settings=dict(CONTEXT),
)

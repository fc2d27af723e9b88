"""``proctor eval``: run tasks, show the scores, and say by the exit code how it went."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from proctor.cli._params import EvalCommand, ParamType, eval_parameters
from proctor.cli._root import EXIT_CODES
from proctor.cli._warnings import plain_warnings
from proctor.contracts import UsageError
from proctor.schema import env_options

if TYPE_CHECKING:
    from proctor.engine import Unit

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


def _epilog() -> str:
    lines = [f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES]
    return "\n".join(["\b", "Exit codes:", *lines])


class _Task(ParamType):
    name = "task"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


def _set_env(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> None:
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--env: {text!r} is not NAME=VALUE.", ctx)
        os.environ[name] = value


def _run(tasks: Sequence[str], as_json: bool, **given: Any) -> int:
    options = _merged(given)
    if not tasks:
        raise UsageError(
            "no task was named. Give a file, a folder, file.py@task or package/task: "
            "`proctor eval FILE --model PROVIDER/MODEL`. `proctor list tasks` shows the tasks of this folder."
        )
    if as_json:
        if options.get("display") not in (None, "none"):
            raise UsageError(
                f"--json needs standard output for itself, but --display {options['display']} was asked for: "
                "leave one of the two out."
            )
        options["display"] = "none"
    from proctor.engine import run

    # Standard output holds the summary and nothing else: what task code prints goes to standard error.
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext(), plain_warnings():
        result = run(list(tasks), options.pop("model", None), options)
    if as_json:
        from proctor.cli._summary import plan_json, summary_json

        click.echo(plan_json(result.units) if options.get("dry_run") else summary_json(result.logs, result.exit_code))
    elif options.get("dry_run"):
        _show_plan(result.units)
    elif options.get("display") == "none":
        from proctor.display import report_text, unit_from_log

        for line in report_text([unit_from_log(log) for log in result.logs]):
            click.echo(line)
    return result.exit_code


def _show_plan(units: Sequence[Unit]) -> None:
    from proctor.display import plural

    click.echo(f"This would run {plural(len(units), 'unit')} (a task with a model):")
    for unit in units:
        samples = "samples of unknown number" if unit.total is None else plural(unit.total, "sample")
        epochs = f" ({unit.epochs} epochs)" if unit.epochs > 1 else ""
        label = f" · {unit.label}" if unit.label else ""
        click.echo(f"  {unit.name}{label} · {unit.model.name} · {samples}{epochs} · {unit.id}")


_CONNECTIONS = ("max_connections", "adaptive_connections")


def _merged(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the command line over those of the environment."""
    try:
        options = env_options(os.environ)
    except ValueError as error:
        raise UsageError(str(error)) from None
    said = {key: value for key, value in given.items() if value is not None}
    for one, other in (_CONNECTIONS, _CONNECTIONS[::-1]):
        if one in said and other not in said:
            options.pop(other, None)  # a fixed number and a moving one: what is said nearer replaces either
    return options | said


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
    epilog=_epilog(),
    params=[
        click.Argument(["tasks"], nargs=-1, type=_Task()),
        *eval_parameters(),
        click.Option(["as_json", "--json"], is_flag=True, help="Print a summary as JSON; implies --display none."),
        click.Option(
            ["--env"],
            multiple=True,
            metavar="NAME=VALUE",
            expose_value=False,
            is_eager=True,
            callback=_set_env,
            help="Set an environment variable first; repeat it.",
        ),
    ],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

"""``proctor eval-retry``: go on with evaluations from their logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from proctor.cli._output import print_json, print_report, unit_facts, unit_name
from proctor.cli._params import EvalCommand, eval_parameters
from proctor.cli._running import CONTEXT, EPILOG, at_once, common_parameters, for_machines, merged_options, own_output
from proctor.schema import retry_keys

if TYPE_CHECKING:
    from proctor.engine import Resumed, RunResult

__all__ = ["retry_command"]

_HELP = """Go on with the evaluations in LOGS: of runs that failed, were cancelled or died.

Samples that are done are kept, those that failed or never ran are run; each evaluation gets a new log with all of them,
beside the old ones, which stay. Task, model and settings come from the log. An evaluation whose task has changed since
is refused, with what has changed.

\b
Examples:
  proctor eval-retry logs/2026-01-31T10-00-00_quiz_abc.eval --dry-run
  proctor eval-retry logs/*.eval --max-connections 50
"""
_REASONS: Mapping[str, str] = {
    "error": "ended in an error",
    "cancelled": "cancelled",
    "invalidated": "invalidated",
    "changed": "changed",
    "never run": "never run",
}


def _run(logs: Sequence[str], as_json: bool, force: bool, **given: Any) -> int:
    options = merged_options(given)
    if as_json:
        for_machines(options, given)
    dry = bool(options.get("dry_run"))
    plans: list[Resumed] = []

    def tell(resumed: Sequence[Resumed]) -> None:
        plans.extend(resumed)
        if not as_json:
            for one in resumed:
                _show(one, dry)

    from proctor.engine import retry

    def show(result: RunResult) -> int:
        if as_json:
            from proctor.cli._summary import summary_facts

            plan = {"logs": [_facts(one) for one in plans]}
            print_json(plan if dry else summary_facts(result.logs, result.exit_code))
        elif not dry and options.get("display") == "none":
            print_report(result.logs)
        return result.exit_code

    with own_output(as_json):
        result = retry(list(logs), options, force=force, tell=tell, last=partial(at_once, show))
    return show(result)


def _show(one: Resumed, dry: bool) -> None:
    """Two lines; in a dry run also the first samples of each reason."""
    plan, name = one.plan, unit_name(one.unit)
    if one.complete is not None:
        click.echo(f"{name}: complete, nothing to run ({one.complete.location})")
        return
    kept = f"{plan.reused:,} samples are done and kept" if one.logs else "a new evaluation, nothing is kept"
    counts = ", ".join(f"{_REASONS[why]} {count:,}" for why, count in plan.why.most_common())
    click.echo(f"{name}: {kept}; {plan.to_run:,} {'would run' if dry else 'run'}{f': {counts}' if counts else ''}")
    if one.logs:
        click.echo(f"  from {', '.join(plan.logs)}")
    for why in plan.why if dry else ():
        named = ", ".join(map(str, plan.first[why]))
        more = plan.why[why] - len(plan.first[why])
        click.echo(f"  {_REASONS[why]}: {named}{f' and {more:,} more' if more else ''}")


def _facts(one: Resumed) -> dict[str, Any]:
    plan = one.plan
    return {
        "logs": plan.logs,
        **unit_facts(one.unit),
        "total": one.unit.total,
        "reused": plan.reused,
        "to_run": plan.to_run,
        "why": {why: {"count": count, "first": plan.first[why]} for why, count in plan.why.items()},
        "complete": None if one.complete is None else one.complete.location,
    }


retry_command = EvalCommand(
    name="eval-retry",
    callback=_run,
    help=_HELP,
    epilog=EPILOG,
    params=[
        click.Argument(["logs"], nargs=-1, required=True),
        click.Option(
            ["--force"], is_flag=True, help="Run what has changed, or has no samples in its log, as a new evaluation."
        ),
        *eval_parameters(only=retry_keys()),
        *common_parameters(),
    ],
    context_settings=dict(CONTEXT),
)

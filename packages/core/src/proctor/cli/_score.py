"""``proctor score``: score the samples of a log anew."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from typing import Any

import click

from proctor.cli._output import print_json, print_report
from proctor.cli._params import EvalCommand, eval_parameters
from proctor.cli._root import EXIT_CODES
from proctor.cli._running import CONTEXT, common_parameters, merged_options, own_output
from proctor.schema import parse_option, score_keys

__all__ = ["score_command"]

_HELP = """Score the samples of the log at LOG anew, without running them.

Samples whose solver failed stay without a score; those whose scorer failed get one. The scored log is written beside
the old one, as <name>-scored, unless --overwrite or --output-file says otherwise. Scores of scorers that are named
stand there beside those of the log; without --scorer, new scores of the log's own scorers stand there in place of the
old ones (--action has it otherwise). Model-graded scorers ask the models
of the log, or those named here. What is graded is kept as it comes: when this was stopped, the same command goes on
from there.

\b
Examples:
  proctor score logs/quiz.eval --scorer f1
  proctor score logs/quiz.eval --scorer judge.py@strict -S partial=true \\
      --model-role grader=openai/gpt-5 --action overwrite --overwrite
"""
_INTERVAL = 5.0  # seconds between two lines of progress
_PARTLY = 3  # exit code: finished, but scorers failed on more samples than may


def _run(
    log: str,
    scorer: Sequence[str],
    scorer_args: Sequence[str],
    metric: Sequence[str],
    action: str | None,
    output: str | None,
    overwrite: bool,
    model: str | None,
    fresh: bool,
    as_json: bool,
    **given: Any,
) -> int:
    from proctor.cli._summary import summary_facts
    from proctor.display import failed_metrics, unit_from_log
    from proctor.engine import ErrorPolicy, ScoringStopped, score
    from proctor.scorer import declared_metrics

    missing: list[str] = []
    metrics = declared_metrics([{"name": name} for name in metric], missing) if metric else None
    if missing:
        raise click.UsageError(f"--metric {missing[0]}: there is no metric of that name")
    options = merged_options(given)
    progress = None if as_json else _Progress()
    try:
        with own_output(as_json), nullcontext() if progress is None else closing(progress):
            header = score(
                log,
                list(scorer) or None,
                scorer_args=parse_option("solver_args", scorer_args) if scorer_args else None,
                metrics=metrics,
                action=action,  # type: ignore[arg-type]  # click has checked it
                output=output,
                overwrite=overwrite,
                model=model,
                fresh=fresh,
                tell=progress,
                on_resume=None if progress is None else progress.resume,
                **options,
            )
    except ScoringStopped as stopped:
        click.echo(f"Error: {stopped}", err=True)
        return stopped.exit_code
    shown = unit_from_log(header)
    failed = shown.outcomes.get("unscored:scoring_failed", 0)
    limit = options.get("fail_on_error")
    code = _PARTLY if ErrorPolicy(True if limit is None else limit).exceeded(failed, shown.total) else 0
    if failed_metrics(header):
        code = 1
    if as_json:
        print_json(summary_facts([header], code))
    else:
        print_report([header])
        if not scorer and action is None:
            click.echo(f"New scores of the log's own scorers; the old ones stand in {log}. --action append keeps both.")
    return code


class _Progress:
    """Says on standard error how many samples are scored: a bar on a terminal, else a line every few seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._last = now()
        self._bar: Any = None

    def resume(self, kept: int) -> None:
        """Say what need not be paid for again."""
        click.echo(f"{kept:,} samples were graded before this was stopped, and are kept (--fresh asks again)", err=True)

    def __call__(self, done: int, total: int) -> None:
        if sys.stderr.isatty():
            if self._bar is None:
                self._bar = click.progressbar(length=total, label="scored", show_pos=True, file=sys.stderr)
                self._bar.render_progress()
            self._bar.update(1)
        elif (now := self._now()) - self._last >= _INTERVAL and done < total:
            self._last = now
            click.echo(f"scored {done:,}/{total:,} {100 * done // total}%", err=True)

    def close(self) -> None:
        """Leave the line of the bar."""
        if self._bar is not None:
            self._bar.render_finish()


def _epilog() -> str:
    meanings = dict(EXIT_CODES)
    lines = [
        ("0", "done"),
        ("1", "a scorer failed on too many samples, or no log could be written; what was graded is kept"),
        ("2", meanings["2"]),
        (str(_PARTLY), "done, with more failures than allowed (--continue-on-fail)"),
        *((code, f"{meanings[code]}; what was graded is kept") for code in ("130", "143")),
    ]
    return "\n".join(["\b", "Exit codes:", *(f"  {code:>3}  {meaning}" for code, meaning in lines)])


def _parameters() -> list[click.Parameter]:
    return [
        click.Argument(["log"], type=click.Path()),
        click.Option(
            ["--scorer"],
            multiple=True,
            metavar="NAME|FILE@NAME",
            help="A scorer; repeat it. Those of the log if not given.",
        ),
        click.Option(["-S", "scorer_args"], multiple=True, metavar="NAME=VALUE", help="An argument of the scorer."),
        click.Option(["--metric"], multiple=True, metavar="NAME", help="A metric in place of the scorer's own."),
        click.Option(
            ["--action"],
            type=click.Choice(["append", "overwrite"]),
            help="Keep the scores that are there, or have the new ones take their place. Of scorers that are named the "
            "default is append; those of the log take the place of their own scores.",
        ),
        click.Option(["--output-file", "output"], metavar="FILE", help="Where the scored log goes."),
        click.Option(
            ["--overwrite"], is_flag=True, help="Write into the log itself, or over what is at --output-file."
        ),
        click.Option(
            ["--model"], metavar="PROVIDER/MODEL", help="Who grades, in place of the model that was evaluated."
        ),
        click.Option(["--fresh"], is_flag=True, help="Ask again for what was graded before this was stopped."),
        *eval_parameters(only=score_keys()),
        *common_parameters(),
    ]


score_command = EvalCommand(
    name="score", callback=_run, help=_HELP, epilog=_epilog(), params=_parameters(), context_settings=dict(CONTEXT)
)

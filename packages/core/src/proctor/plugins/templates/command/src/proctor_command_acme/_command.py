"""Counts the logs of each task: reads their headers, and none of their samples."""

from __future__ import annotations

import json
from collections import Counter

import click
from proctor.log import list_eval_logs


@click.command("acme")
@click.option("--log-dir", default="./logs", envvar="PROCTOR_LOG_DIR", show_default=True, help="The folder of logs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(log_dir: str, as_json: bool) -> None:
    """Count the logs of each task."""
    counts = Counter(info.task for info in list_eval_logs(log_dir))
    if as_json:
        click.echo(json.dumps(counts, indent=2, sort_keys=True))
        return
    for task, count in sorted(counts.items()):
        click.echo(f"{count:6}  {task}")
    if not counts:
        click.echo(f"No logs in {log_dir}.")

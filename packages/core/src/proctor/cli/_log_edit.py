"""``proctor log edit``, ``invalidate``, ``edit-score``, ``recompute``: changes of finished logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from proctor.cli._output import json_option, json_text, print_json, print_report
from proctor.contracts import UsageError

if TYPE_CHECKING:
    from proctor.log import Provenance
    from proctor.schema import EvalLog

__all__ = ["COMMANDS"]

_AUTHOR = click.option("--author", metavar="NAME", help="Who changes it; the user of this process if not given.")
_REASON = click.option("--reason", metavar="TEXT", help="Why.")
_JSON = json_option("Print the log's new state as JSON.")
_EPOCH = click.option("--epoch", type=click.IntRange(min=1), metavar="N", help="Only this epoch.")


def _provenance(author: str | None, reason: str | None) -> Provenance:
    from proctor.log import new_provenance

    return new_provenance(author, reason)


@click.command("edit", short_help="Change tags and metadata of a log.")
@click.argument("path")
@click.option("--add-tag", multiple=True, metavar="TAG", help="Add a tag; repeat it.")
@click.option("--remove-tag", multiple=True, metavar="TAG", help="Take a tag away; repeat it.")
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="Set a metadata value; repeat it.")
@click.option("--unset", multiple=True, metavar="NAME", help="Take a metadata value away; repeat it.")
@_AUTHOR
@_REASON
@_JSON
def edit_command(
    path: str,
    add_tag: Sequence[str],
    remove_tag: Sequence[str],
    pairs: Sequence[str],
    unset: Sequence[str],
    author: str | None,
    reason: str | None,
    as_json: bool,
) -> None:
    """Change tags and metadata of the log at PATH. What the run said stays; who changed what, when and why is kept.

    The samples are not touched. Of two edits at the same time one waits for the other, and both are in the log.
    """
    from proctor.log import edit_eval_log
    from proctor.schema import MetadataEdit, TagsEdit, parse_scalar

    values = {}
    for text in pairs:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--set {text!r} is not NAME=VALUE.")
        values[name] = parse_scalar(value)
    edits: list[TagsEdit | MetadataEdit] = []
    if add_tag or remove_tag:
        edits.append(TagsEdit(tags_add=list(add_tag), tags_remove=list(remove_tag)))
    if values or unset:
        edits.append(MetadataEdit(metadata_set=values, metadata_remove=list(unset)))
    if not edits:
        raise UsageError("nothing to change: give --add-tag, --remove-tag, --set or --unset.")
    header = edit_eval_log(path, edits, _provenance(author, reason))
    own = {key: value for key, value in header.metadata.items() if key != "proctor"}
    if as_json:
        print_json({"log": path, "tags": header.tags, "metadata": own})
    else:
        click.echo(f"{path}: tags {', '.join(header.tags) or 'none'}; metadata {_pairs(own) or 'none'}")


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{key}={json_text(value, indent=None)}" for key, value in values.items())


@click.command("invalidate", short_help="Say that samples of a log must not count.")
@click.argument("path")
@click.option("--sample-id", "ids", multiple=True, metavar="ID", help="A sample; repeat it.")
@_EPOCH
@click.option("--all", "every", is_flag=True, help="All samples.")
@click.option("--undo", is_flag=True, help="Let them count again.")
@_AUTHOR
@_REASON
@_JSON
def invalidate_command(
    path: str,
    ids: Sequence[str],
    epoch: int | None,
    every: bool,
    undo: bool,
    author: str | None,
    reason: str | None,
    as_json: bool,
) -> None:
    """Say that samples of the log at PATH must not count. Metrics are computed anew without them.

    `proctor eval-retry` runs them again. What they are stays in the log; --undo lets them count again.
    """
    if every == bool(ids):
        raise UsageError("say which samples: --sample-id ID, or --all.")
    if every and epoch is not None:
        raise UsageError("--epoch belongs to --sample-id.")
    from proctor.engine import invalidate_samples, uninvalidate_samples

    which = None if every else [(id, epoch) for id in ids]
    if undo:
        _show(lambda: uninvalidate_samples(path, which), path, as_json)
    else:
        _show(lambda: invalidate_samples(path, which, _provenance(author, reason)), path, as_json)


@click.command("edit-score", short_help="Change the score of a sample.")
@click.argument("path")
@click.argument("scorer")
@click.option("--sample-id", "id", required=True, metavar="ID", help="The sample.")
@click.option("--epoch", type=click.IntRange(min=1), default=1, metavar="N", help="Its epoch.", show_default=True)
@click.option("--value", metavar="VALUE", help="The new value: C, I, a number, ...")
@click.option("--answer", metavar="TEXT", help="The new answer.")
@click.option("--explanation", metavar="TEXT", help="The new explanation.")
@_AUTHOR
@_REASON
@_JSON
def edit_score_command(
    path: str,
    scorer: str,
    id: str,
    epoch: int,
    value: str | None,
    answer: str | None,
    explanation: str | None,
    author: str | None,
    reason: str | None,
    as_json: bool,
) -> None:
    """Change the score that SCORER gave a sample of the log at PATH. What it was stays in its history."""
    from proctor.engine import edit_score
    from proctor.schema import ScoreEdit, parse_scalar

    given: dict[str, Any] = {"answer": answer, "explanation": explanation}
    given = {name: text for name, text in given.items() if text is not None}
    if value is not None:
        given["value"] = parse_scalar(value)
    if not given:
        raise UsageError("nothing to change: give --value, --answer or --explanation.")
    edit = ScoreEdit(**given, provenance=_provenance(author, reason))
    _show(lambda: edit_score(path, id, scorer, edit, epoch=epoch), path, as_json)


@click.command("recompute", short_help="Compute the metrics of a log anew.")
@click.argument("path")
@_JSON
def recompute_command(path: str, as_json: bool) -> int:
    """Compute the metrics of the log at PATH anew, from the scores that its samples have.

    An evaluation that failed for want of a metric is a success once all are there; while one is not, exit code 1.
    """
    from proctor.display import failed_metrics
    from proctor.engine import recompute_metrics

    return 1 if failed_metrics(_show(lambda: recompute_metrics(path), path, as_json)) else 0


def _show(change: Callable[[], EvalLog], path: str, as_json: bool) -> EvalLog:
    from proctor.cli._summary import log_facts
    from proctor.cli._warnings import plain_warnings

    with plain_warnings():
        header = change()
    if as_json:
        print_json(log_facts(header))
    else:
        print_report([header])
    return header


COMMANDS = (edit_command, invalidate_command, edit_score_command, recompute_command)

"""What is left on the terminal when a run is over: for each unit its scores, what befell it, and where its log is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proctor.contracts import MetricSnapshot, UnitSnapshot
from proctor.display._place import error_sentence
from proctor.display._text import counts, duration, number, plural, retries, tokens

__all__ = ["Row", "UnitReport", "report", "report_text", "score_text", "summary"]

_MOST_METRICS = 24  # a metric grouped by 57 subjects would push everything else off the screen
_NO_NEWS = ("total", "completed", "success", "scored")
_MOST_EXAMPLES = 3
_HEADING = ("task", "with", "model", "status", "score", "scored", "outcomes")
_NOUNS = {
    "error": "error",
    "limit": "stopped at a limit",
    "stop": "with a reply that was cut short",
    "unscored": "without a score",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a report; ``kind`` is what a coloured screen chooses a style by."""

    label: str
    value: str
    note: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class UnitReport:
    """A unit: its heading (``name``, ``model``, ``ending``) and the rows below it."""

    name: str
    label: str
    model: str
    status: str
    ending: str
    rows: tuple[Row, ...]


def report(unit: UnitSnapshot) -> UnitReport:
    """The report of a finished unit."""
    took = "" if unit.seconds is None else f" in {duration(unit.seconds)}"
    ending = {"done": f"done{took}", "error": f"failed{took}", "cancelled": f"cancelled{took}"}
    return UnitReport(
        name=unit.name,
        label=unit.label,
        model=unit.model,
        status=unit.status,
        ending=ending.get(unit.status, unit.status),
        rows=tuple(_rows(unit)),
    )


def report_text(units: Sequence[UnitSnapshot]) -> list[str]:
    """The reports of all units as lines of plain text, with a blank line between two units, and a table of several."""
    lines: list[str] = []
    for unit in units:
        item = report(unit)
        if lines:
            lines.append("")
        lines.append(" · ".join(filter(None, (item.name, item.label, item.model, item.ending))))
        labels = max((len(row.label) for row in item.rows), default=0)
        values = max((len(row.value) for row in item.rows if row.note), default=0)
        for row in item.rows:
            text = f"  {row.label:<{labels}}  {row.value:<{values}}  {row.note}" if row.note else ""
            lines.append((text or f"  {row.label:<{labels}}  {row.value}").rstrip())
    table = summary(units)
    if table:
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        rows = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in table)
        lines += ["", *(row.rstrip() for row in rows)]
    return lines


def summary(units: Sequence[UnitSnapshot]) -> list[tuple[str, ...]]:
    """A table of several units with its heading, empty columns left out; nothing for a single unit."""
    if len(units) < 2:
        return []
    rows = [_summary_row(unit) for unit in units]
    kept = [place for place in range(len(_HEADING)) if any(row[place] for row in rows)]
    return [tuple(row[place] for place in kept) for row in [_HEADING, *rows]]


def score_text(unit: UnitSnapshot) -> tuple[str, str]:
    """The first metric of a finished unit and its coverage: ``accuracy 0.617 ± 0.071`` and ``47/50 partial``."""
    first = next(iter(unit.results), None)
    if first is None:
        return "", ""
    row = _metric_row(first, False)
    scored = "" if first.total is None else f"{first.scored or 0:,}/{first.total:,}"
    return f"{row.label} {row.value}", f"{scored} partial" if first.partial else scored


def _summary_row(unit: UnitSnapshot) -> tuple[str, ...]:
    ending = {"error": "failed"}.get(unit.status, unit.status)
    return (unit.name, unit.label, unit.model, ending, *score_text(unit), _befell(unit))


def _rows(unit: UnitSnapshot) -> Iterator[Row]:
    scorers = {metric.scorer for metric in unit.results}
    for metric in unit.results[:_MOST_METRICS]:
        yield _metric_row(metric, len(scorers) > 1)
    if len(unit.results) > _MOST_METRICS:
        yield Row("...", f"{len(unit.results) - _MOST_METRICS} more metrics are in the log")
    if not unit.results and unit.total is not None:
        yield Row("samples", f"{unit.done:,} / {unit.total:,}", "no scores", "unscored")
    if befell := _befell(unit):
        yield Row("outcomes", befell, kind="outcomes")
    error = error_sentence(unit.error)
    told = f"{unit.error_place}: {error}" if unit.error_place else error
    if error:
        yield Row("error", told, kind="error")
    examples = [text for text in unit.error_examples.values() if not (error and _told(text, error, told))]
    for text in examples[:_MOST_EXAMPLES]:
        yield Row("first", text, kind="error")
    if unit.retry_cause and unit.retries:
        yield Row("retries", retries(unit.retries, unit.retry_cause, noun=False), kind="outcomes")
    used = f"{tokens(unit.input_tokens)} in, {tokens(unit.output_tokens)} out"
    yield Row("tokens", f"{used}, {retries(unit.retries)}" if unit.retries and not unit.retry_cause else used)
    if unit.location:
        yield Row("log", unit.location, kind="log")
    if unit.next:
        yield Row("next", unit.next, kind="next")


def _told(example: str, error: str, told: str) -> bool:
    """Whether an example, which may have been cut short, is the error that has been told."""
    return example.endswith(error) or (example.endswith("…") and told.startswith(example[:-1].rstrip()))


def _metric_row(metric: MetricSnapshot, with_scorer: bool) -> Row:
    label = f"{metric.scorer}/{metric.name}" if with_scorer else metric.name
    if metric.reducer:
        label += f" ({metric.reducer})"
    value = number(metric.value) + ("" if metric.stderr is None else f" ± {number(metric.stderr)}")
    if metric.scored == 0 and metric.value != metric.value:
        value = "none"
    if metric.scored is None:
        return Row(label, value, kind="metric")
    # Of a group it is not always known how many samples were planned.
    of = "" if metric.total is None else f" / {metric.total:,}"
    scored = f"{metric.scored:,}{of} scored"
    if not metric.partial:
        return Row(label, value, scored, "metric")
    why = counts({_reason(kind): count for kind, count in metric.missing.items()})
    return Row(label, value, f"partial: {scored} ({why})" if why else f"partial: {scored}", "unscored")


def _reason(kind: str) -> str:
    """``TimeoutError`` from ``error:TimeoutError``, ``not run`` from ``not_run``."""
    return (kind.partition(":")[2] or kind).replace("_", " ")


def _befell(unit: UnitSnapshot) -> str:
    """Errors, limits and missing scores by kind; samples that simply completed are not news."""
    kinds: dict[str, dict[str, int]] = {"error": dict(unit.errors)}
    counted = bool(unit.errors)
    for outcome, count in unit.outcomes.items():
        family, _, kind = outcome.partition(":")
        if family in _NO_NEWS or count == 0 or (family == "error" and counted):
            continue
        kinds.setdefault(family, {})[kind] = count
    parts = []
    for family, found in kinds.items():
        number_of = sum(found.values())
        if number_of:
            named = counts({kind: count for kind, count in found.items() if kind})
            noun = _NOUNS.get(family, family.replace("_", " "))
            said = plural(number_of, noun) if family == "error" else f"{number_of:,} {noun}"
            parts.append(f"{said} ({named})" if named else said)
    if unit.retried:
        parts.append(f"{plural(unit.retried, 'sample')} run again")
    return ", ".join(parts)

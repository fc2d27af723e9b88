"""What a run told of itself, as text."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from proctor.display import duration, operation_text, plural

__all__ = ["run_text"]

_LATEST = 3  # changes of a limit


def run_text(run: Mapping[str, Any]) -> str:
    """The run as a person reads it.

    Args:
        run: its answer, or ``pid``, ``run_id`` and ``error`` of one that did not give any.
    """
    if "error" in run:
        return f"run {run['run_id']} · process {run['pid']} · does not answer: {run['error']}"
    about = (f"run {run['run_id']}", f"process {run['pid']}", duration(run["seconds"]), run["backend"], run["log_dir"])
    lines = [" · ".join(about)]
    units = run["units"]
    for unit, line in zip(units, _columns([_unit(unit) for unit in units]), strict=True):
        lines += [line, f"    waits: {unit['stalled']}"] if unit.get("stalled") else [line]
    lines += _gates(run["gates"])
    lines += _loop(run["loop"])
    lines += _retries(run["retries"])
    lines += _samples(run)
    return "\n".join(lines)


def _columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    lines = []
    for row in rows:
        cells = (
            text.rjust(width) if place in right else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  " + "  ".join(cell for cell, width in zip(cells, widths, strict=True) if width).rstrip())
    return lines


def _unit(unit: Mapping[str, Any]) -> tuple[str, ...]:
    done = f"{unit['done']:,}" if unit["total"] is None else f"{unit['done']:,}/{unit['total']:,}"
    failed = sum(unit["errors"].values())
    return (
        unit["task"],
        unit["label"],
        unit["model"],
        unit["status"],
        f"{done} done",
        f"{unit['running']:,} under way" if unit["running"] else "",
        plural(failed, "error") if failed else "",
        plural(unit["retries"], "retry") if unit["retries"] else "",
        "  ".join(f"{name} {value:.3f}" for name, value in unit["metrics"].items()),
    )


def _gates(gates: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [("gate", "in use", "limit", "waiting", "")]
    for gate in gates:
        limit = "none" if gate["limit"] is None else f"{gate['limit']:,}"
        rows.append((gate["name"], f"{gate['held']:,}", limit, f"{gate['waiting']:,}", ", ".join(_notes(gate))))
    table = _columns(rows, right=(1, 2, 3))
    lines = ["", table[0]]
    for gate, line in zip(gates, table[1:], strict=True):
        lines += [line, *(f"    {text}" for text in _more(gate))]
    return lines


def _notes(gate: Mapping[str, Any]) -> Iterator[str]:
    if adaptive := gate.get("adaptive"):
        yield f"adaptive {adaptive['min']}-{adaptive['max']}: {adaptive['phase'].replace('_', ' ')}"
        if adaptive["latency"] is not None:
            yield f"{adaptive['latency']:.1f} s a request"
        if adaptive["refused_at"] is not None:
            yield f"refused at {adaptive['refused_at']}"
        if adaptive["hold"]:
            yield f"nothing is sent for {adaptive['hold']:.1f} s"
    pace = gate.get("pace", {})
    for name, words in (("requests_per_minute", "requests a minute"), ("tokens_per_minute", "tokens a minute")):
        if pace.get(name) is not None:
            yield f"{pace[name]:,.0f} {words} by the provider's quota"
    for name in ("max_rpm", "max_tpm"):
        if pace.get(name) is not None:
            yield f"--{name.replace('_', '-')} {pace[name]:,}"
    if gate.get("waiting_for_pace"):
        yield f"{gate['waiting_for_pace']:,} wait for the pace"
    if gate.get("backing_off"):
        yield f"{gate['backing_off']:,} back off"


def _more(gate: Mapping[str, Any]) -> Iterator[str]:
    now = time.time()
    for change in gate.get("changes", ())[-_LATEST:]:
        ago = duration(max(0.0, now - change["timestamp"]))
        yield f"{ago} ago {change['old']} -> {change['new']} ({change['reason']})"
    for row in gate.get("shared", ()):
        limit = f" of {row['limit']}" if row["limit"] else ""
        yield f"shared: process {row['process']} holds {row['held']}{limit}, {row['waiting']} waiting"


def _loop(loop: Mapping[str, Any]) -> list[str]:
    lines = ["", f"  event loop: {loop['lag']:.2f} s late, at most {loop['max_lag']:.2f} s so far"]
    if loop["stands_in"]:
        lines.append(f"    stands still in {loop['stands_in']}")
    for stall in loop["stalls"]:
        code = f": {stall['code']}" if stall["code"] else ""
        lines.append(f"    stood still for {stall['seconds']:.1f} s ({stall['count']}x) in {stall['where']}{code}")
    return lines


def _retries(retries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for model in retries:
        role = f" ({model['role']})" if model["role"] else ""
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in model["kinds"].items()) or "none"
        yield f"  retries of {model['model']}{role}: {kinds}"
        if model["last_error"]:
            yield f"    {model['last_error']}"


def _samples(run: Mapping[str, Any]) -> list[str]:
    count, samples = run["samples_unfinished"], run["samples"]
    if not count:
        return []
    lines = ["", f"  {plural(count, 'unfinished sample')}, the longest wait first"]
    several = len({(unit["task"], unit["model"]) for unit in run["units"]}) > 1
    rows = []
    for sample in samples:
        name = f"{sample['task']} {sample['model']} " if several else ""
        again = f" (run {sample['attempt']})" if sample["attempt"] > 1 else ""
        name += f"sample {sample['id']}, epoch {sample['epoch']}{again}"
        for place, operation in enumerate(sample["operations"]):
            rows.append(("" if place else name, duration(operation["seconds"]), operation_text(operation)))
    lines += [f"  {line}" for line in _columns(rows, right=(1,))]
    if count > len(samples):
        lines.append(f"    and {count - len(samples):,} more (--all)")
    return lines

"""The capability matrix, `docs/capabilities.md`: what became of each check of the kit, by component.

`docs/capabilities.json` keeps the results, from reports that `pytest --proctor-report` wrote. A report may be of a part
of the checks or of some components; what it says nothing of stays as it was, and what is gone from the code goes.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import proctor_testkit
from proctor_testkit import Check, Suite

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "capabilities.json"
PAGE = ROOT / "docs" / "capabilities.md"
UPDATE = (
    "run ./dev docs; or, for what is new, "
    "pytest packages/NAME/tests -m conformance --proctor-report report.json && python docs/generate.py report.json"
)

# Of several tests of one check, on both back-ends say, the first of these that is among their outcomes counts.
_WORST = ("failed", "xfailed", "passed", "skipped", "not applicable")
_TRIED = _WORST[:4]  # what can't be run on this machine is shown as not run
_CELLS = {"passed": "✓", "not applicable": "", "skipped": "·"}
_LONGEST = 34  # characters of a column's head

Results = dict[str, dict[str, Any]]
"""By the place of the class (``path::Class``): ``kind``, ``name``, and ``checks``, each ``[outcome, reason]``."""


def suites() -> dict[str, type[Suite]]:
    """The suites of the kit, by the kind of component."""
    public = [getattr(proctor_testkit, name) for name in proctor_testkit.__all__ if name.endswith("Suite")]
    return {suite.kind: suite for suite in public if suite is not Suite}


@cache
def components() -> dict[str, str]:
    """The name of the suite of every component that the packages' own tests hold one to, by the place of its class."""
    found: dict[str, str] = {}
    for path in sorted(ROOT.glob("packages/*/tests/**/test_*.py")):
        known = {name: name for name in proctor_testkit.__all__ if name.endswith("Suite")}
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body if "proctor_testkit" in text else ():
            if not isinstance(node, ast.ClassDef):
                continue
            bases = [base.id for base in node.bases if isinstance(base, ast.Name) and base.id in known]
            if bases:
                known[node.name] = known[bases[0]]
                if node.name.startswith("Test"):
                    found[f"{path.relative_to(ROOT).as_posix()}::{node.name}"] = known[bases[0]]
    return found


def read() -> Results:
    """The results that are kept."""
    kept: Results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return kept


def merged(kept: Results, rows: Iterable[Mapping[str, str]]) -> Results:
    """The results with those of a report.

    Raises:
        ValueError: checks failed.
    """
    new = _by_place(rows)
    ids = {kind: {one.id for one in suite.checks()} for kind, suite in suites().items()}
    found: Results = {}
    for place in components():
        entry = new.get(place) or kept.get(place)
        if entry is None:
            continue
        checks = dict(kept[place]["checks"]) if place in kept else {}
        for check, result in new.get(place, {"checks": {}})["checks"].items():
            if result[0] != "skipped" or check not in checks:  # what this machine can't run was run on another
                checks[check] = result
        there = {check: checks[check] for check in sorted(checks) if check in ids[entry["kind"]]}
        found[place] = {"kind": entry["kind"], "name": entry["name"], "checks": there}
    return found


def _by_place(rows: Iterable[Mapping[str, str]]) -> Results:
    """A report as results are kept, without components that were only collected."""
    found: Results = {}
    failed: list[str] = []
    for row in rows:
        place = row["test"].partition("[")[0].rpartition("::")[0]
        entry = found.setdefault(place, {"kind": row["kind"], "name": row["name"], "checks": {}})
        result = [row["outcome"], row["reason"]]
        known = entry["checks"].setdefault(row["check"], result)
        if _WORST.index(result[0]) < _WORST.index(known[0]):
            entry["checks"][row["check"]] = result
        if row["outcome"] == "failed":
            failed.append(row["test"])
    if failed:
        raise ValueError("checks failed, so nothing is written:\n  " + "\n  ".join(failed))
    return {place: entry for place, entry in found.items() if any(one[0] in _TRIED for one in entry["checks"].values())}


def text_of(results: Results) -> str:
    """The results as they are kept: a line for each check, without the lists of JSON's own layout."""
    parts = []
    for place, entry in sorted(results.items()):
        checks = ",\n".join(
            f"   {json.dumps(check)}: {json.dumps(entry['checks'][check])}" for check in entry["checks"]
        )
        head = f'  "kind": {json.dumps(entry["kind"])},\n  "name": {json.dumps(entry["name"])},\n  "checks": {{\n'
        parts.append(f" {json.dumps(place)}: {{\n{head}{checks}\n  }}\n }}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def problems(results: Results) -> list[str]:
    """Where the results are not of the components and checks that exist."""
    known, found = components(), []
    kinds = {suite.__name__: suite for suite in suites().values()}
    for place in sorted(known.keys() | results.keys()):
        if place not in results:
            found.append(f"{place} has no results")
        elif place not in known:
            found.append(f"{place} is gone")
        else:
            checks = {one.id for one in kinds[known[place]].checks()}
            found += [f"{place}: {id} has no result" for id in sorted(checks - results[place]["checks"].keys())]
            found += [f"{place}: {id} is gone" for id in sorted(results[place]["checks"].keys() - checks)]
    return found


def page() -> str:
    """The page, of the results that are kept."""
    results, lines = read(), [*_HEAD]
    for kind, suite in suites().items():
        those = sorted((entry["name"], place) for place, entry in results.items() if entry["kind"] == kind)
        names = [name for name, _ in those]
        # Several classes of one component differ in what is behind it, such as the engine.
        those = [(name if names.count(name) == 1 else place.rpartition("::Test")[2], place) for name, place in those]
        if those:
            lines += [
                "",
                f"## {kind.capitalize()}{'es' if kind.endswith('x') else 's'}",
                "",
                *_table(suite.checks(), those, results),
            ]
    return "\n".join(lines) + "\n"


_HEAD = """\
# What each component can do

Every component of these packages is held to the suite of its kind in the [test-kit](../packages/testkit/README.md), as
yours is when you [write one](writing-a-plugin.md). The tables show what became of each check:

| | |
|---|---|
| ✓ | it passes, on every back-end that the component has |
| a number | it is expected to fail; the reason stands below the table |
| empty | the component does not offer what the check is about, and says so |
| · | it was not run |

A check is a must (the core relies on it) unless it says *should*. `./dev docs` makes this page from real results.
""".splitlines()


def _table(checks: Sequence[Check], those: Sequence[tuple[str, str]], results: Results) -> Iterator[str]:
    yield f"| check | {' | '.join(f'`{_short(name)}`' for name, _ in those)} |"
    yield f"|---|{':-:|' * len(those)}"
    reasons: dict[str, int] = {}
    groups = sorted({one.needs or "" for one in checks}, key=lambda needs: (needs.count(" "), needs))
    for needs in sorted(groups, key=bool):
        if needs:
            yield f"| *with {', '.join(needs.split())}* |{' |' * len(those)}"
        for one in checks:
            if (one.needs or "") == needs:
                cells = (_cell(results[place]["checks"].get(one.id, ["skipped", ""]), reasons) for _, place in those)
                yield f"| `{one.id}`{' (should)' if one.level == 'should' else ''} | {' | '.join(cells)} |"
    if reasons:
        yield ""
        yield from (f"{number}. {reason}" for reason, number in reasons.items())


def _cell(result: Sequence[str], reasons: dict[str, int]) -> str:
    outcome, reason = result
    return str(reasons.setdefault(reason, len(reasons) + 1)) if outcome == "xfailed" else _CELLS[outcome]


def _short(name: str) -> str:
    half = _LONGEST // 2
    return name if len(name) <= _LONGEST else f"{name[:half]}…{name[-half:]}"

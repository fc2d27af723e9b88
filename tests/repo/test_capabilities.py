"""The capability matrix is of the components and checks that exist, and is what the results that are kept make it."""

from __future__ import annotations

import capabilities
import pytest

Row = dict[str, str]


def test_the_results_are_of_the_components_and_checks_that_exist() -> None:
    assert capabilities.problems(capabilities.read()) == [], capabilities.UPDATE


def test_the_page_is_what_the_results_make_it() -> None:
    assert capabilities.PAGE.read_text(encoding="utf-8") == capabilities.page(), "run: python docs/generate.py"


def row(outcome: str, reason: str = "", check: str = "display.run", back_end: str = "") -> Row:
    place, kept = next((place, kept) for place, kept in capabilities.read().items() if kept["kind"] == "display")
    test = f"{place}::test_it[{back_end}]" if back_end else f"{place}::test_it"
    return {"kind": "display", "name": kept["name"], "check": check, "test": test, "outcome": outcome, "reason": reason}


def result(*rows: Row) -> list[str]:
    """What the results say of the check of ``rows`` once their report is in them."""
    place = rows[0]["test"].partition("[")[0].rpartition("::")[0]
    found: list[str] = capabilities.merged(capabilities.read(), rows)[place]["checks"][rows[0]["check"]]
    return found


def test_a_report_of_a_part_changes_only_that_part() -> None:
    before = capabilities.read()
    new = row("xfailed", "it can't")

    after = capabilities.merged(before, [new])

    assert result(new) == ["xfailed", "it can't"]
    changed = [place for place in before if before[place] != after[place]]
    assert changed == [new["test"].rpartition("::")[0]]


def test_what_this_machine_can_not_run_keeps_its_result() -> None:
    assert result(row("skipped", "no engine"), row("passed", check="display.empty"))[0] == "passed"


def test_the_worst_of_several_back_ends_counts() -> None:
    ran, left = row("passed", back_end="asyncio"), row("not applicable", "does not run on trio", back_end="trio")
    assert result(ran, left) == ["passed", ""]
    assert result(row("xfailed", "why", back_end="asyncio"), ran) == ["xfailed", "why"]


def test_a_check_that_failed_is_no_result() -> None:
    with pytest.raises(ValueError, match="checks failed, so nothing is written"):
        capabilities.merged(capabilities.read(), [row("failed")])


def test_what_is_gone_from_the_code_goes() -> None:
    gone = {"kind": "display", "name": "gone", "checks": {"display.run": ["passed", ""]}}
    kept = {**capabilities.read(), "packages/gone/tests/test_it.py::TestGone": gone}

    told = "packages/gone/tests/test_it.py::TestGone is gone"
    assert told in capabilities.problems(kept)
    assert told not in capabilities.problems(capabilities.merged(kept, []))

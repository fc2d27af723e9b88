"""``proctor plugins``, ``proctor plugins doctor`` and ``proctor plugins show``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from proctor.cli import main
from proctor.cli._plugins import plugins
from proctor.plugins._known import KNOWN


@pytest.fixture
def run(put: Callable[..., list[Path]], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    put("good", "import_error", "wrong_core")
    monkeypatch.setattr("proctor.plugins._slow.PATIENCE", 600)  # a busy machine adds no words to what is compared

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(plugins, list(arguments), standalone_mode=False)

    return run


def rows(result: Result) -> list[list[str]]:
    return [line.split() for line in result.output.splitlines()]


def test_the_list_shows_who_provides_what(run: Callable[..., Result]) -> None:
    shown = rows(run())

    assert ["model", "provider", "acme", "acme-good", "1.2.0", "available"] in shown
    assert ["model", "provider", "futuristic", "broken-wrong-core", "0.6.0", "refused"] in shown
    assert any(row[:3] == ["model", "provider", "mock"] for row in shown)


def test_the_list_as_json(run: Callable[..., Result]) -> None:
    found: list[dict[str, Any]] = json.loads(run("--json").output)

    refused = next(info for info in found if info["name"] == "futuristic")
    assert refused["state"] == "refused"
    assert refused["fault"]["code"] == "core-version"
    assert refused["fault"]["severity"] == "error"


def test_the_doctor_exits_with_one_when_a_plugin_is_broken(run: Callable[..., Result]) -> None:
    result = run("doctor", "acme-good", "broken-import-error")

    assert result.return_value == 1
    assert "acme-good 1.2.0: ok" in result.output
    assert "broken-import-error 0.3.0: broken" in result.output
    assert "error import-error: " in result.output


@pytest.fixture
def noisy(tmp_path: Path) -> Path:
    file = tmp_path / "acme_noisy.py"
    file.write_text(
        "from proctor.contracts import DisplayProvider\nfrom proctor.hookspecs import hookimpl\nprint('hello there')\n"
        "@hookimpl\ndef proctor_displays(): return [DisplayProvider('acme-noisy', print)]\n"
    )
    return file


def test_what_a_plugin_prints_stands_in_no_json(
    run: Callable[..., Result], noisy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plugins", "show", "acme-noisy", "--plugin", str(noisy), "--json"]) == 0
    shown = capsys.readouterr()
    assert main(["plugins", "--plugin", str(noisy), "--json"]) == 0
    listed = capsys.readouterr()

    assert [each["info"]["name"] for each in json.loads(shown.out)] == ["acme-noisy"]
    assert "hello there" in shown.err
    assert "acme-noisy" in {info["name"] for info in json.loads(listed.out)}


def test_the_doctor_examines_a_plugin_file(run: Callable[..., Result], noisy: Path) -> None:
    result = run("doctor", str(noisy), "--plugin", str(noisy))

    assert result.return_value == 0
    assert f"{noisy}" in result.output
    assert "display: acme-noisy" in result.output


def test_an_entry_that_says_nothing_is_shown(
    run: Callable[..., Result], put: Callable[..., list[Path]], distribution: Callable[..., Path]
) -> None:
    put(distribution("acme-bad", entries={"proctor.nothing": {"odd-entry": "acme_bad.hooks"}}))

    assert "unknown-group" in run("show", "odd-entry").output
    assert "acme-bad 1.0: ok" in run("doctor", "acme-bad").output


def test_the_doctor_as_json(run: Callable[..., Result]) -> None:
    result = run("doctor", "acme-good", "--json")

    report = json.loads(result.output)
    assert report["ok"] is True
    assert result.return_value == 0
    assert report["plugins"][0]["modules"][0]["records"]["model_providers"] == ["acme"]


def test_one_is_shown_in_full(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "hunter2")

    text = run("show", "acme").output

    assert "Acme's models" in text
    assert "ACME_API_KEY (set)" in text
    assert "hunter2" not in text
    assert "region (text; default 'north'): where the model runs." in text
    assert "proctor-core>=0.1" in text
    assert "sandbox acme" in text


def test_a_distribution_is_shown_with_all_that_it_offers(run: Callable[..., Result]) -> None:
    found = json.loads(run("show", "Acme_Good", "--json").output)

    assert {(item["info"]["kind"], item["info"]["name"]) for item in found} == {
        ("model_providers", "acme"),
        ("sandbox_providers", "acme"),
    }


def test_a_broken_one_is_shown_with_its_fault(run: Callable[..., Result]) -> None:
    text = run("show", "unimportable").output

    assert "broken" in text
    assert "module_that_nobody_has" in text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("acmee", "Did you mean 'acme'?"),
        ("hologram", "proctor-display-hologram"),
        ("qqqqq", "`proctor plugins` lists all"),
    ],
)
def test_an_unknown_one_says_what_would_provide_it(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setitem(KNOWN["displays"], "hologram", "proctor-display-hologram")  # surely not installed here

    assert text in str(run("show", name).exception)


def test_plugins_are_added_and_switched_off(run: Callable[..., Result], tmp_path: Path) -> None:
    file = tmp_path / "acme_more.py"
    file.write_text(
        "from proctor.contracts import RunnerProvider\nfrom proctor.hookspecs import hookimpl\n"
        "@hookimpl\ndef proctor_runners(): return [RunnerProvider(name='acmerun', factory=print)]\n"
    )

    shown = rows(run("--plugin", str(file), "--disable-plugin", "acme-good"))

    assert any(row[:2] == ["runner", "acmerun"] for row in shown)
    assert ["model", "provider", "acme", "acme-good", "1.2.0", "disabled"] in shown

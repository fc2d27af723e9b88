"""A name stands for one component: what another core is needed for, what is switched off, what is offered twice."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import plugins as room
from proctor.contracts import UsageError
from proctor.plugins import Code
from proctor.plugins._fence import core_requirements, refusal
from proctor.plugins._manager import Manager
from proctor.plugins._scan import Source


def source(*requires: str) -> Source:
    return Source("acme", "1.0", requires)


@pytest.mark.parametrize(
    ("requirement", "core", "accepted"),
    [
        ("proctor-core>=0.1,<0.2", "0.1.0", True),
        ("proctor-core>=0.1,<0.2", "0.1.0.dev1", True),
        ("proctor-core>=0.1,<0.2", "0.1.7rc1+local", True),
        ("proctor-core>=0.1,<0.2", "0.2.0", False),
        ("proctor-core>=0.1,<0.2", "0.2.0.dev1", False),
        ("Proctor_Core (>=0.3)", "0.1.0", False),
        ("proctor.core>=0.1.0a1", "0.1.0", True),
        ("proctor-core[trio]>=0.2", "0.1.0", False),
        ("proctor-core>=9; extra == 'dev'", "0.1.0", True),
        ("proctor-core>=9; python_version < '3'", "0.1.0", True),
        ("proctor-core>=9; python_version >= '3'", "0.1.0", False),
        ("proctor-core-extras>=9", "0.1.0", True),
        ("proctor-corelib>=9", "0.1.0", True),
        ("other>=9", "0.1.0", True),
    ],
)
def test_the_fence_compares_the_base_version(requirement: str, core: str, accepted: bool) -> None:
    assert (refusal(source(requirement), core) is None) is accepted


def test_a_requirement_that_can_not_be_read_is_a_refusal() -> None:
    fault = refusal(source("proctor-core>>1"), "0.1.0")

    assert fault is not None
    assert fault.code is Code.BAD_METADATA


def test_one_requirement_that_does_not_fit_is_enough() -> None:
    assert refusal(source("proctor-core>=0.1", "proctor-core>=5"), "0.1.0") is not None


@given(st.tuples(st.integers(0, 30), st.integers(0, 30)), st.sampled_from(["", ".dev4", "a1", "rc2", ".post1"]))
def test_a_development_version_counts_as_what_it_becomes(version: tuple[int, int], suffix: str) -> None:
    major, minor = version
    fitting = source(f"proctor-core>={major}.{minor},<{major}.{minor + 1}")

    assert refusal(fitting, f"{major}.{minor}{suffix}") is None
    assert core_requirements(fitting)


def test_a_name_offered_twice_names_both_and_how_to_choose(manager: Callable[..., Manager]) -> None:
    plugins = manager("good", "name_taken")

    with pytest.raises(UsageError) as raised:
        plugins.get("model_providers", "acme")

    text = str(raised.value)
    assert "acme-good 1.2.0" in text
    assert "broken-name-taken 0.7.0" in text
    assert "PROCTOR_DISABLE_PLUGINS" in text
    # The way out that the message gives is one.
    way_out = text.partition("--disable-plugin ")[2].partition(" ")[0]
    assert manager("good", "name_taken", disabled=[way_out]).get("model_providers", "acme").name == "acme"


@pytest.mark.parametrize(
    ("disabled", "module"),
    [
        ("broken-name-taken", "acme_good"),
        ("Broken_Name.Taken", "acme_good"),
        ("broken-name-taken:acme", "acme_good"),
        ("acme-good", "broken_name_taken"),
    ],
)
def test_switching_one_off_chooses_the_other(manager: Callable[..., Manager], disabled: str, module: str) -> None:
    plugins = manager("good", "name_taken", disabled=[disabled])

    assert plugins.get("model_providers", "acme").factory.__module__ == f"{module}.hooks"


DISPLAYS = """
from proctor.contracts import DisplayProvider
from proctor.hookspecs import hookimpl

@hookimpl
def proctor_displays():
    return [DisplayProvider("plain", print)]
"""


@pytest.fixture
def intruded(manager: Callable[..., Manager], distribution: Callable[..., Path]) -> Callable[..., Manager]:
    """A core, and a distribution that offers a display of the core's name, found in this order or that."""

    def display(name: str) -> Path:
        package = f"acme_{name.replace('-', '_')}"
        entries = {"proctor.displays": {"plain": f"{package}.hooks"}}
        return distribution(name, DISPLAYS, entries=entries, package=package)

    roots = [display("stray-display"), display("proctor-core")]
    return lambda *order, **settings: manager(*(roots[n] for n in order), **settings)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_is_only_a_default_is_the_core_s_own_whoever_offers_the_name(
    intruded: Callable[..., Manager], order: tuple[int, int]
) -> None:
    with pytest.warns(UserWarning, match=r"stray-display 1.0.*The core's own is used here\."):
        record = intruded(*order).get("displays", "plain", default=True)

    assert record.name == "plain"
    assert "acme_proctor_core.hooks" in sys.modules
    assert "acme_stray_display.hooks" not in sys.modules


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_name_of_the_core_that_is_asked_for_is_an_error_that_sends_away_the_other(
    intruded: Callable[..., Manager], order: tuple[int, int]
) -> None:
    with pytest.raises(UsageError, match="--disable-plugin stray-display:plain") as raised:
        intruded(*order).get("displays", "plain")

    assert "--disable-plugin proctor-core" not in str(raised.value)


def test_a_name_of_the_core_in_a_plugin_file_has_a_way_out(intruded: Callable[..., Manager], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(DISPLAYS)

    with pytest.raises(UsageError, match=r"another name.*--disable-plugin proctor-core:plain\."):
        intruded(1, extra=[str(tmp_path / "mine.py")]).get("displays", "plain")


def test_one_name_is_switched_off_and_the_others_of_its_distribution_stay(manager: Callable[..., Manager]) -> None:
    plugins = manager("good", "name_taken", disabled=["broken-name-taken:acme"])

    assert plugins.get("model_providers", "other-acme").name == "other-acme"


def test_the_environment_switches_off_too(manager: Callable[..., Manager]) -> None:
    environ = {"PROCTOR_DISABLE_PLUGINS": " broken-name-taken , not-installed-here,"}
    plugins = manager("good", "name_taken", environ=environ, disabled=["not-installed-here"])

    assert plugins.names("model_providers") == ["acme"]
    assert plugins.get("model_providers", "acme").factory.__module__ == "acme_good.hooks"


def test_what_is_switched_off_says_so_when_it_is_asked_for(manager: Callable[..., Manager]) -> None:
    plugins = manager("good", disabled=["acme-good"])

    with pytest.raises(UsageError, match="offered by acme-good, which is disabled"):
        plugins.get("model_providers", "acme")
    assert {info.state for info in plugins.inventory()} == {"disabled"}


@pytest.mark.parametrize("mistake", ["acme-god", "acme-good:acmee"])
def test_switching_off_what_is_not_there_is_refused(manager: Callable[..., Manager], mistake: str) -> None:
    with pytest.raises(UsageError, match=r"Did you mean 'acme-good(:acme)?'"):
        manager("good", disabled=[mistake])


def test_a_name_is_not_taken_by_what_the_core_refuses(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    later = distribution(
        "later-acme", entries={"proctor.model_providers": {"acme": "later_acme.hooks"}}, requires=("proctor-core>=77",)
    )
    plugins = manager("good", later)

    assert plugins.get("model_providers", "acme").factory.__module__ == "acme_good.hooks"
    assert [fault.code for fault in plugins.faults()] == [Code.CORE_VERSION]


def test_one_distribution_that_declares_a_name_twice_is_told(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    root = distribution("acme-both")
    next(root.glob("*.dist-info/entry_points.txt")).write_text(
        "[proctor.displays]\nacme = acme_both.hooks\n[proctor.displays]\nacme = acme_both.other\n"
    )

    with pytest.raises(UsageError, match=r"acme-both 1\.0 declares the display 'acme' twice"):
        manager(root).get("displays", "acme")


def test_configuring_anew_changes_what_there_is(put: Callable[..., list[Path]]) -> None:
    put("good", "name_taken")
    room.configure(disabled=["acme-good"])
    assert room.get("model_providers", "acme").factory.__module__ == "broken_name_taken.hooks"

    room.configure(disabled=["broken-name-taken"])

    assert room.get("model_providers", "acme").factory.__module__ == "acme_good.hooks"

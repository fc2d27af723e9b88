"""The kit can be neither weakened nor fooled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor_testkit import ModelProviderSuite

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow  # each test runs pytest

FAULTY = """
import pytest
from proctor.contracts import ModelAPI
from proctor.model import Model, ModelOutput
from proctor.schema import ModelUsage
from proctor_testkit import ModelProviderSuite

class Faulty(ModelAPI):
    fault = "{fault}"

    async def generate(self, input, tools, tool_choice, config):
        if self.fault == "model.generate":
            return ModelOutput.from_content(self.model_name, "")
        output = ModelOutput.from_content(self.model_name, "Hello.")
        if self.fault == "model.conversation" and len(input) == 4:
            input[0].content = "changed"
        asked = sum(len(message.text) for message in input)
        total = 1 if self.fault == "model.usage" else asked + 2
        output.usage = ModelUsage(input_tokens=asked, output_tokens=2, total_tokens=total)
        return output

    def connection_key(self):
        return f"faulty:{{id(self)}}" if self.fault == "model.connection_key" else "faulty"

    def __repr__(self):
        return "testkit-credential-3f9a" if self.fault == "model.no_secret" else "Faulty()"

    async def aclose(self):
        closed, self.closed = getattr(self, "closed", False), True
        if closed and self.fault == "model.close":
            raise RuntimeError("closed twice")

@pytest.fixture(autouse=True)
def _the_faulty_one(monkeypatch):
    import proctor_testkit._model_checks as suite
    from proctor.schema import GenerateConfig
    def make(name, **kwargs):
        return Model(Faulty(name, config=GenerateConfig()), GenerateConfig(), name)
    monkeypatch.setattr(suite, "get_model", make)

class TestFaulty(ModelProviderSuite):
    model = "mock/faulty"
"""


def outcomes(pytester: pytest.Pytester, source: str) -> dict[str, str]:
    """The worst outcome of each check that ran."""
    pytester.makepyfile(source)
    pytester.runpytest_subprocess("--proctor-report", "report.json", "-p", "no:cacheprovider", timeout=120)
    worst: dict[str, str] = {}
    for row in json.loads((pytester.path / "report.json").read_text()):
        if row["outcome"] != "not applicable" and worst.get(row["check"]) != "failed":
            worst[row["check"]] = row["outcome"]
    return worst


@pytest.mark.parametrize(
    "fault",
    ["model.generate", "model.conversation", "model.usage", "model.connection_key", "model.no_secret", "model.close"],
)
def test_a_faulty_component_fails_in_its_own_check(pytester: pytest.Pytester, fault: str) -> None:
    found = outcomes(pytester, FAULTY.format(fault=fault))

    failed = {check for check, outcome in found.items() if outcome == "failed"}
    assert fault in failed
    # An empty reply is seen by every check that reads replies; all other faults by exactly one.
    assert failed == {fault} or fault == "model.generate"


def test_a_component_without_fault_passes(pytester: pytest.Pytester) -> None:
    found = outcomes(pytester, FAULTY.format(fault="none"))

    assert set(found.values()) == {"passed"}
    assert len(found) >= 10


def test_a_check_cannot_be_overridden() -> None:
    with pytest.raises(TypeError, match=r"overrides the check model\.usage"):

        class Weakened(ModelProviderSuite):
            def test_it_counts_tokens(self) -> None:  # type: ignore[override]
                """Says nothing."""


def test_an_expected_failure_names_a_check_and_a_reason() -> None:
    with pytest.raises(TypeError, match="no check is called"):

        class Misspelt(ModelProviderSuite):
            expected_failures = {"model.usges": "the server does not say"}

    with pytest.raises(TypeError, match="needs a reason"):

        class Silent(ModelProviderSuite):
            expected_failures = {"model.usage": " "}


def test_an_expected_failure_that_passes_is_an_error(pytester: pytest.Pytester) -> None:
    source = FAULTY.format(fault="none") + '    expected_failures = {"model.usage": "no usage"}\n'

    assert outcomes(pytester, source)["model.usage"] == "failed"


def test_a_base_class_beside_the_suite_can_not_override_either() -> None:
    class Mixin:
        def test_it_counts_tokens(self) -> None:
            """Says nothing."""

    with pytest.raises(TypeError, match=r"overrides the check model\.usage"):

        class Weakened(Mixin, ModelProviderSuite):
            """Looks like the suite."""


def test_a_capability_is_one_that_a_check_needs() -> None:
    with pytest.raises(TypeError, match="no check needs tool; what it may name is faults, max_tokens"):

        class Misspelt(ModelProviderSuite):
            capabilities = frozenset({"tool"})


@pytest.mark.parametrize("given", ["usage", ["usage"], {1}])
def test_capabilities_are_a_set_of_names(given: Any) -> None:
    with pytest.raises(TypeError, match=r'Wrong.capabilities is a set of names, such as {"usage"}, but it is'):
        type("Wrong", (ModelProviderSuite,), {"capabilities": given})


def test_expected_failures_have_reasons() -> None:
    with pytest.raises(TypeError, match=r"Wrong.expected_failures gives each check its reason"):
        type("Wrong", (ModelProviderSuite,), {"expected_failures": {"model.usage"}})


def test_a_check_that_hangs_fails_and_what_is_a_must_is_named(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import anyio, pytest
        from proctor_testkit import Suite, check

        class TestHanging(Suite):
            pytestmark = pytest.mark.anyio
            backends = ("asyncio",)
            expected_failures = {"hang": "it waits for a server that there is not"}

            @check("hang", seconds=0.05)
            async def test_hang(self):
                await anyio.sleep_forever()
        """
    )

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--proctor-report", "r.json", timeout=120)

    result.stdout.fnmatch_lines(["*does not conform: hang is a must (it waits for a server that there is not)*"])
    [one] = [row for row in json.loads((pytester.path / "r.json").read_text()) if row["outcome"] == "xfailed"]
    assert one["reason"] == "it waits for a server that there is not"


def test_checks_that_need_what_is_not_there_are_left_out(pytester: pytest.Pytester) -> None:
    source = FAULTY.format(fault="none") + '    capabilities = frozenset()\n    backends = ("asyncio", "trio")\n'

    found = outcomes(pytester, source)

    assert "model.usage" not in found
    assert "model.one_request" not in found


def test_a_check_that_leaves_this_machine_fails(pytester: pytest.Pytester) -> None:
    source = """
    import socket
    from proctor_testkit import Suite, check

    class TestReaching(Suite):
        @check("reach")
        def test_reach(self):
            socket.create_connection(("192.0.2.1", 80), timeout=1)
    """

    assert outcomes(pytester, source) == {"reach": "failed"}


def test_the_report_is_written_where_it_was_asked_for(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytester.makepyfile(FAULTY.format(fault="none"))

    pytester.runpytest_subprocess("--proctor-report", str(tmp_path / "out.json"), timeout=120)

    rows = json.loads((tmp_path / "out.json").read_text())
    assert {row["level"] for row in rows if row["outcome"] == "passed"} == {"must"}
    assert {row["kind"] for row in rows} == {"model provider"}
    [why] = {row["reason"] for row in rows if row["check"] == "model.reasoning"}
    assert why == "without the capability reasoning and server"
    assert all(row["component"].endswith("TestFaulty") for row in rows)

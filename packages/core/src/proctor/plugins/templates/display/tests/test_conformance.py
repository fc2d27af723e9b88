"""The contract of displays, as the test-kit has it."""

from __future__ import annotations

from proctor_testkit import DisplaySuite


class TestAcme(DisplaySuite):
    display = "acme:every=0"
    capabilities = frozenset({"messages", "results"})

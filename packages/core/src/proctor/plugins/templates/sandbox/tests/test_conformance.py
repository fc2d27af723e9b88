"""The contract of sandboxes, as the test-kit has it."""

from __future__ import annotations

from proctor_testkit import SandboxSuite


class TestAcme(SandboxSuite):
    provider = "acme"
    capabilities = frozenset({"reap", "list"})

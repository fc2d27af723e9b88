"""The core's own mock provider passes the suite that outsiders run."""

from __future__ import annotations

from proctor_testkit import ModelProviderSuite


class TestMock(ModelProviderSuite):
    model = "mock/model"

"""The conformance kit: what every plugin author runs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proctor_testkit._bedrock_server import FakeBedrock
    from proctor_testkit._display_suite import DisplaySuite
    from proctor_testkit._fault_proxy import FaultProxy, ProxiedRequest
    from proctor_testkit._log_store_suite import LogStoreSuite
    from proctor_testkit._model_suite import FakeServer, FakeToolServer, ModelProviderSuite
    from proctor_testkit._network import OutsideNetworkError, loopback_only
    from proctor_testkit._observer_suite import ObserverSuite
    from proctor_testkit._openai_server import FakeOpenAI, Garbled, WaitForm
    from proctor_testkit._sandbox_suite import SandboxSuite
    from proctor_testkit._scripted_server import FakeRequest, Reply, ScriptedServer, Step
    from proctor_testkit._suite import Check, Needed, Suite, check
    from proctor_testkit.kube import FakeKubernetes, KubeRequest

__all__ = [
    "Check",
    "DisplaySuite",
    "FakeBedrock",
    "FakeKubernetes",
    "FakeOpenAI",
    "FakeRequest",
    "FakeServer",
    "FakeToolServer",
    "FaultProxy",
    "Garbled",
    "KubeRequest",
    "LogStoreSuite",
    "ModelProviderSuite",
    "Needed",
    "ObserverSuite",
    "OutsideNetworkError",
    "ProxiedRequest",
    "Reply",
    "SandboxSuite",
    "ScriptedServer",
    "Step",
    "Suite",
    "WaitForm",
    "check",
    "loopback_only",
]

# pytest loads this package in every run where it is installed: a suite, and with it the core, loads when it is used.
_HOME = {
    "Check": "_suite",
    "DisplaySuite": "_display_suite",
    "FakeBedrock": "_bedrock_server",
    "FakeKubernetes": "kube",
    "FakeOpenAI": "_openai_server",
    "FakeRequest": "_scripted_server",
    "FakeServer": "_model_suite",
    "FakeToolServer": "_model_suite",
    "FaultProxy": "_fault_proxy",
    "Garbled": "_openai_server",
    "KubeRequest": "kube",
    "LogStoreSuite": "_log_store_suite",
    "ModelProviderSuite": "_model_suite",
    "Needed": "_suite",
    "ObserverSuite": "_observer_suite",
    "OutsideNetworkError": "_network",
    "ProxiedRequest": "_fault_proxy",
    "Reply": "_scripted_server",
    "SandboxSuite": "_sandbox_suite",
    "ScriptedServer": "_scripted_server",
    "Step": "_scripted_server",
    "Suite": "_suite",
    "WaitForm": "_openai_server",
    "check": "_suite",
    "loopback_only": "_network",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

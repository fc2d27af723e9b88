"""The conformance suite of model providers."""

from __future__ import annotations

from typing import ClassVar

from proctor_testkit._model_call_checks import CallChecks
from proctor_testkit._model_checks import FakeServer, FakeToolServer
from proctor_testkit._model_fault_checks import FaultChecks
from proctor_testkit._model_loop_checks import LoopChecks
from proctor_testkit._model_tool_checks import ToolChecks
from proctor_testkit._model_wire_checks import WireChecks

__all__ = ["FakeServer", "FakeToolServer", "ModelProviderSuite"]


class ModelProviderSuite(CallChecks, LoopChecks, WireChecks, ToolChecks, FaultChecks):
    """What every model provider must do. A subclass sets ``model``, and ``server`` when it talks over a network.

    Attributes:
        model: the model to test, as ``provider/model``.
        model_args: the provider's arguments, as ``-M`` would give them.
        api_key: the credential to pass to a fake server. It must be found nowhere else.
        reasoning_proof: what the server says beside ``reasoning`` and wants back with it, such as a signature.
        capabilities: of ``usage``, ``max_tokens`` (a limit ends a reply), ``server`` (the fixture gives one), ``tools``
            and ``reasoning`` (the server can be told to call tools, and to think; thoughts go back to it),
            ``retry_after_date`` and ``retry_after_ms`` (the forms that the service uses beside seconds) and ``faults``
            (the server is a ``ScriptedServer``, such as
            ``FakeOpenAI`` or a subclass of your own: it drops, stalls and garbles).

    Example::

        class TestAcme(ModelProviderSuite):
            model = "acme/small-1"
            capabilities = frozenset({"usage", "max_tokens", "server"})

            @pytest.fixture
            def server(self):
                with AcmeServer() as server:
                    yield server
    """

    capabilities: ClassVar[frozenset[str]] = frozenset({"usage"})

"""The conformance suite of sandboxes."""

from __future__ import annotations

from proctor_testkit._sandbox_exec_checks import ExecChecks
from proctor_testkit._sandbox_file_checks import FileChecks
from proctor_testkit._sandbox_life_checks import LifeChecks
from proctor_testkit._sandbox_owner_checks import OwnerChecks

__all__ = ["SandboxSuite"]


class SandboxSuite(ExecChecks, FileChecks, LifeChecks, OwnerChecks):
    """What every sandbox provider must do. A subclass names its ``provider``.

    The sandboxes need ``sh`` and the usual commands beside it (``cat``, ``head``, ``id``, ``seq``, ``setsid``,
    ``sha256sum``, ``tr``, ``wc``), as every small Linux image has them.

    Attributes:
        provider: the name under which the plugin registered it.
        config: the provider's own configuration, as a task would give it.
        patience: seconds after which commands are killed by time-outs; by then their children have begun.
        services: a configuration that makes several sandboxes of a sample, for ``named``.
        capabilities: of ``users`` (commands run as ``root`` and as ``nobody`` when told so), ``reap`` (what a killed
            process left is taken away), ``list`` (``sandboxes()`` and ``remove()`` know what any process made, with its
            owner), ``vanish`` (a sandbox that is removed under a command gives ``SandboxBrokenError``), ``sessions``
            (a timeout also kills what has left the command's process group) and ``named`` (several sandboxes a sample).

    Example::

        class TestAcmeSandbox(SandboxSuite):
            provider = "acme"
            config = "image.yaml"
            services = "compose.yaml"
            capabilities = frozenset({"users", "reap", "list", "vanish", "sessions", "named"})
    """

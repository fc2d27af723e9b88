"""What this package offers. Importing it is cheap: the driver comes with the first sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.contracts import SandboxProvider
from proctor.hookspecs import hookimpl

if TYPE_CHECKING:
    from proctor.contracts import SandboxDriver


def _make() -> SandboxDriver:
    from proctor_sandbox_acme._sandbox import AcmeDriver

    return AcmeDriver()


@hookimpl
def proctor_sandbox_providers() -> Sequence[SandboxProvider]:
    """One provider; it takes no configuration. For each CPU two sandboxes are up and four commands run at once."""
    return [
        SandboxProvider(
            name="acme",
            factory=_make,
            default_max_sandboxes=lambda cpus: 2 * cpus,
            default_max_execs=lambda cpus: 4 * cpus,
            takes_config=False,
            summary="a folder of this machine for each sample",
        )
    ]

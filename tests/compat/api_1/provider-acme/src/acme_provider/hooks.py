"""What Acme offers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from proctor.contracts import ModelProvider, StartupContext
from proctor.hookspecs import hookimpl


@dataclass
class AcmeArgs:
    """The arguments of Acme's models.

    Attributes:
        team: who pays.
    """

    team: str = "default"
    strict: bool = False
    tags: list[str] = field(default_factory=list, metadata={"help": "notes for the invoice"})


def _make(name: str, *, base_url: str | None, api_key: str | None, config: Any, args: AcmeArgs) -> Any:
    from acme_provider._api import AcmeAPI

    return AcmeAPI(name, base_url=base_url, api_key=api_key, config=config, args=args)


@hookimpl
def proctor_model_providers() -> list[ModelProvider]:
    return [
        ModelProvider(
            name="acme",
            factory=_make,
            args=AcmeArgs,
            env=(("ACME_API_KEY",), ("ACME_ID", "ACME_SECRET")),
            max_connections=4,
            adaptive=False,
            backends=("asyncio", "trio"),
            summary="models of Acme",
        )
    ]


@hookimpl
def proctor_startup(context: StartupContext) -> None:
    if "ACME_TOKEN" in context.environ:  # its name of long ago
        context.environ.setdefault("ACME_API_KEY", context.environ["ACME_TOKEN"])

"""``proctor info``: what is in use here, for a bug report and for the question why."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from proctor.cli._output import json_option, print_json

__all__ = ["info_command"]


@click.command("info", context_settings={"help_option_names": ["-h", "--help"]})
@json_option()
def info_command(as_json: bool) -> None:
    """Show the version, folders and settings in use.

    Of environment variables only the names are shown: their values may be secrets.
    """
    facts = _facts()
    if as_json:
        print_json(facts)
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        click.echo(f"{name.replace('_', ' '):<{width}}  {_text(value)}")


def _facts() -> Mapping[str, Any]:
    import proctor
    from proctor import plugins
    from proctor.concurrency import cpu_budget
    from proctor.display import default_display

    here = Path.cwd()
    env_files = (folder / ".env" for folder in (here, *here.parents) if (folder / ".env").is_file())
    budget = cpu_budget()
    return {
        "version": proctor.__version__,
        "package": str(Path(proctor.__file__).parent),
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        "log_folder": os.environ.get("PROCTOR_LOG_DIR") or str(Path("logs").absolute()),
        "log_name": "<time>_<task>_<id>.eval",
        "env_file": next(map(str, env_files), None),
        "settings": sorted(name for name in os.environ if name.startswith("PROCTOR_")),
        "async_backends": ["asyncio", *(["trio"] if find_spec("trio") else [])],
        "uvloop": find_spec("uvloop") is not None,
        "cpu_budget": f"{budget.cpus} ({budget.source})",
        "display": os.environ.get("PROCTOR_DISPLAY") or default_display(),
        "plugins": sorted({f"{info.distribution} {info.version}" for info in plugins.inventory()}),
    }


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)

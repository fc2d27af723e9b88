"""``proctor plugins``: what is installed, what one of them offers, what is wrong, and a new one."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from proctor import plugins as room
from proctor.cli._output import json_option, json_text, print_json

if TYPE_CHECKING:
    from proctor.plugins import Description, Diagnosis, Fault, NewPackage, PluginInfo, StartUp

__all__ = ["plugins"]

_JSON = json_option()


_MORE = click.option(
    "--plugin", "more", multiple=True, metavar="FILE|MODULE", help="Also this module or Python file; repeatable."
)


@click.group("plugins", invoke_without_command=True)
@click.option("--plugin", multiple=True, metavar="FILE|MODULE", help="Also this module or Python file; repeatable.")
@click.option(
    "--disable-plugin",
    "disabled",
    multiple=True,
    metavar="DIST[:NAME]",
    help="Without this distribution, or one name that it offers; repeatable.",
)
@_JSON
@click.pass_context
def plugins(ctx: click.Context, plugin: tuple[str, ...], disabled: tuple[str, ...], as_json: bool) -> None:
    """Show and check the installed plugins. Without a command: list them; nothing of them is imported."""
    with _quiet():
        room.configure(plugin, disabled)
    if ctx.invoked_subcommand is None:
        inventory = room.inventory()
        click.echo(json_text(_data(inventory)) if as_json else _listing(inventory, room.faults()))


def _quiet() -> contextlib.redirect_stdout[TextIO]:
    """Where plugins are imported here: what they print must not stand in the output of a command."""
    return contextlib.redirect_stdout(sys.stderr)


def _add(ctx: click.Context, more: tuple[str, ...]) -> None:
    """Further plugins, beside those that were named before the command."""
    if more:
        before = ctx.parent.params if ctx.parent is not None else {}
        with _quiet():
            room.configure([*before.get("plugin", ()), *more], before.get("disabled", ()))


@plugins.command("doctor", short_help="Examine each plugin in a process of its own.")
@click.argument("distributions", nargs=-1, metavar="[DIST]...")
@click.option("--bisect", is_flag=True, help="Also find what slows every start: measures some, with plugins left out.")
@_MORE
@_JSON
@click.pass_context
def doctor(
    ctx: click.Context, distributions: tuple[str, ...], bisect: bool, more: tuple[str, ...], as_json: bool
) -> int:
    """Examine each plugin (or those named) in a process of its own; exit with 1 if one can't be used."""
    _add(ctx, more)
    found = room.diagnose(distributions, lambda text: click.echo(text, err=True))
    start = room.measure_startup() if bisect else None
    sound = not any(fault.severity == "error" for diagnosis in found for fault in diagnosis.faults)
    if as_json:
        print_json({"ok": sound, "plugins": _data(found)} | ({"startup": _data(start)} if start else {}))
    else:
        lines = [line for diagnosis in found for line in _diagnosis(diagnosis)]
        click.echo("\n".join([*lines, *(_start(start) if start else ())]))
    return 0 if sound else 1


@plugins.command("new", short_help="Write the package of a new plugin, with its tests.")
@click.argument("kind")
@click.argument("name")
@click.option("--dir", "folder", default=".", metavar="DIR", help="Write the package's folder in there.")
@_JSON
def new(kind: str, name: str, folder: str, as_json: bool) -> None:
    """Write a package that offers NAME, a small component that works, and the tests of its contract.

    KIND is model-provider, sandbox, log-store, display, observer, command or tasks.
    """
    package = room.write_package(kind, name, folder)
    click.echo(json_text(_data(package)) if as_json else _written(package))


@plugins.command("show", short_help="Show one component, or all of a distribution.")
@click.argument("name")
@_MORE
@_JSON
@click.pass_context
def show(ctx: click.Context, name: str, more: tuple[str, ...], as_json: bool) -> None:
    """Show what is called NAME (a component or a distribution): arguments, environment, limits."""
    _add(ctx, more)
    with _quiet():
        found = room.describe(name)
    click.echo(json_text(_data(found)) if as_json else "\n\n".join(_description(description) for description in found))


def _data(value: Any) -> Any:
    """Records as JSON data; a fault says its severity too."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        data = {field.name: _data(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return data | ({"severity": value.severity} if isinstance(value, room.Fault) else {})
    if isinstance(value, Mapping):
        return {str(key): _data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_data(item) for item in value]
    return value


def _listing(inventory: list[PluginInfo], faults: list[Fault]) -> str:
    rows = [("KIND", "NAME", "DISTRIBUTION", "VERSION", "STATE")]
    rows += [(room.KINDS[info.kind].noun, info.name, info.distribution, info.version, info.state) for info in inventory]
    return "\n".join([*_columns(rows), *(_fault(fault) for fault in faults)])


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _fault(fault: Fault) -> str:
    return f"{fault.severity} {fault.code.value}: {fault.message}"


def _diagnosis(diagnosis: Diagnosis) -> list[str]:
    errors = sum(fault.severity == "error" for fault in diagnosis.faults)
    verdict = "disabled" if diagnosis.disabled else "broken" if errors else "ok"
    lines = [f"{diagnosis.distribution} {diagnosis.version}".rstrip() + f": {verdict}"]
    for module in diagnosis.modules:
        cost = "not imported" if module.seconds is None else f"{1000 * module.seconds:.0f} ms"
        lines.append(f"  {module.module} ({cost})")
        for kind, names in module.records.items():
            lines += _wrapped(f"    {room.KINDS[kind].noun}: {', '.join(names)}", indent="      ")
    lines += [f"  {_fault(fault)}" for fault in diagnosis.faults]
    lines += [f"  extra {extra}: {', '.join(names)} not installed" for extra, names in diagnosis.missing_extras.items()]
    return lines


def _start(start: StartUp) -> list[str]:
    lines = [f"start-up: {1000 * start.seconds:.0f} ms, {1000 * start.without:.0f} ms of them without plugins"]
    for slow in start.slow:
        names = " and ".join(slow.distributions)
        off = " ".join(f"--disable-plugin {name}" for name in slow.distributions)
        lines.append(f"  {names}: {1000 * slow.seconds:.0f} ms of every start; {off} leaves it out")
    return lines if start.slow else [*lines, "  no plugin adds to it what a person would notice"]


def _written(package: NewPackage) -> str:
    lines = [f"{package.folder} offers the {room.KINDS[package.kind].noun} {package.name}:"]
    lines += [f"  {name}" for name in package.files]
    lines += ["Install it, test it, and look at it:", f"  cd {shlex.quote(package.folder)}"]
    return "\n".join([*lines, "  pip install -e '.[test]'", "  pytest", f"  proctor plugins show {package.name}"])


def _description(description: Description) -> str:
    info = description.info
    rows: list[tuple[str, str]] = [
        ("summary", description.summary),
        ("distribution", f"{info.distribution} {info.version}".rstrip()),
        ("requires", description.requires_core),
        ("module", info.module),
        ("state", info.state),
        ("fault", _fault(info.fault) if info.fault else ""),
        ("environment", " or ".join(_variables(alternative) for alternative in description.env)),
    ]
    rows += [(name.replace("_", " "), _plain(value)) for name, value in description.details.items()]
    noun = room.KINDS[info.kind].noun if info.kind else "entry point"
    lines = [f"{noun} {info.name}", *_columns([(f"  {k}", v) for k, v in rows if v])]
    lines += ["  arguments"] if description.args else []
    for arg in description.args:
        default = "required" if arg.default is None else f"default {arg.default}"
        text = f"    {arg.name} ({arg.type}; {default})" + (f": {arg.help}" if arg.help else "")
        lines += _wrapped(text, indent="      ")
    return "\n".join(lines)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, 118, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _variables(alternative: Mapping[str, bool]) -> str:
    return " and ".join(f"{name} ({'set' if is_set else 'not set'})" for name, is_set in alternative.items())


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)

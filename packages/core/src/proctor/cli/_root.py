"""The command ``proctor`` itself: which commands there are, without importing any of them."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from pathlib import Path

import click

__all__ = ["EXIT_CODES", "LazyGroup", "root"]

EXIT_CODES = (
    ("0", "done, sample errors within the threshold included"),
    ("1", "a task was given up: too many errors, a lost store, a spent budget"),
    ("2", "the command or its input makes no sense; nothing was sent"),
    ("3", "finished with more errors than allowed, or with errors alone"),
    ("130", "interrupted (Ctrl-C)"),
    ("143", "terminated (SIGTERM)"),
)

# name: (module, attribute, the line in the help)
_BUILT_IN: Mapping[str, tuple[str, str, str]] = {
    "eval": ("proctor.cli._eval", "eval_command", "Evaluate tasks."),
    "eval-retry": ("proctor.cli._retry", "retry_command", "Go on with evaluations that did not come to their end."),
    "eval-set": ("proctor.cli._eval_set", "eval_set_command", "Evaluate tasks until all are complete."),
    "score": ("proctor.cli._score", "score_command", "Score a log anew."),
    "list": ("proctor.cli._list", "list_command", "List the tasks in files and folders."),
    "log": ("proctor.cli._log", "log", "List, show, convert, recover and edit logs."),
    "status": ("proctor.cli._status", "status", "Show and steer the evaluations that are running."),
    "sandbox": ("proctor.cli._sandbox", "sandbox", "List, enter and remove sandboxes."),
    "plugins": ("proctor.cli._plugins", "plugins", "Show and check the installed plugins, or write one."),
    "info": ("proctor.cli._info", "info_command", "Show the version, folders and settings in use."),
    "completion": ("proctor.cli._completion", "completion_command", "Print the shell completion script."),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and lines of help, and imports a command when it is called.

    Args:
        lazy: name of a command: module, attribute, line of help.
        more: gives the names of further commands (those of plugins), each with where it is from; asked for by the help
            and by names that are not built in.
        line: gives the line of help of one of those, for the help alone.
        make: makes one of those.
    """

    def __init__(
        self,
        *args: object,
        lazy: Mapping[str, tuple[str, str, str]],
        more: Callable[[], Mapping[str, str]] | None = None,
        line: Callable[[str, str], str] | None = None,
        make: Callable[[str], click.Command] | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # click's own arguments, passed on
        self._lazy = lazy
        self._more = more or dict
        self._line = line or (lambda name, source: f"From {source}.")
        self._make = make

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The built-in commands in their order, then those of plugins."""
        return [*self._lazy, *sorted(name for name in self._more() if name not in self._lazy)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name in self._lazy:
            module, attribute, _ = self._lazy[cmd_name]
            found = getattr(importlib.import_module(module), attribute)
            assert isinstance(found, click.Command)
            return found
        if self._make is not None and cmd_name in self._more():
            return self._make(cmd_name)
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands without importing them; the line of a plugin's is what its hook says."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in self._lazy.items()])
        if others := sorted((name, source) for name, source in self._more().items() if name not in self._lazy):
            with formatter.section("Commands of plugins"):
                formatter.write_dl([(name, self._line(name, source)) for name, source in others])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the close match of a name that does not exist."""
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None and not name.startswith("-"):
            ctx.fail(f"there is no command {name!r}.{self._hint(ctx, name)}")
        return super().resolve_command(ctx, args)

    def _hint(self, ctx: click.Context, name: str) -> str:
        close = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
        if close:
            return f" Did you mean `{ctx.command_path} {close[0]}`?"
        if name.partition("@")[0].endswith(".py") or Path(name).exists():
            return f" To evaluate a task: `proctor eval {name} --model PROVIDER/MODEL`."
        return ""


def _plugin_commands() -> Mapping[str, str]:
    from proctor import plugins

    return {
        info.name: f"{info.distribution} {info.version}".rstrip()
        for info in plugins.inventory()
        if info.kind == "commands"
    }


def _plugin_line(name: str, source: str) -> str:
    """The summary of a plugin's command, or where it is from: a broken one must not break the help."""
    from proctor import plugins
    from proctor.contracts import UsageError

    try:
        summary = str(plugins.get("commands", name).summary)
    except UsageError:
        return f"Can't be used, from {source}: `proctor plugins doctor` says why."
    return summary or f"From {source}."


def _plugin_command(name: str) -> click.Command:
    from proctor import plugins

    command: click.Command = plugins.make("commands", plugins.get("commands", name))
    return command


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from proctor import __version__

        click.echo(f"proctor {__version__}")
        ctx.exit()


root = LazyGroup(
    name="proctor",
    help="""Evaluate language models.

    A task is a dataset, a solver and a scorer; `proctor eval TASK --model PROVIDER/MODEL` runs it and leaves a log with
    every sample, every model call and the score.""",
    epilog="""`proctor COMMAND --help` shows what a command takes, and `proctor list tasks` which tasks are in this
    folder.

    Settings are read from the environment (PROCTOR_...) and from the nearest .env file, which does not
    override it. PROCTOR_DEBUG=1 shows the traceback of an error.""",
    lazy=_BUILT_IN,
    more=_plugin_commands,
    line=_plugin_line,
    make=_plugin_command,
    params=[
        click.Option(
            ["-V", "--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Show the version.",
        )
    ],
    context_settings={"help_option_names": ["-h", "--help"]},
)

"""The table of options as click parameters: their forms, their groups in the help, their completion."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from proctor.schema import GROUPS, Option, full_option_table, option_table, parse_option

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:  # generic since click 8.5 only
    ParamType = click.ParamType

__all__ = ["EvalCommand", "ParamType", "Value", "eval_parameters"]

_REPEATED = ("pairs", "roles", "texts", "specs", "ids")
_METAVARS: Mapping[str, str] = {"int": "N", "number": "X", "tokens": "N", "text": "TEXT"}
_EVAL_SET = "Eval set"
_OTHER = "Other"
_ELSEWHERE: Mapping[str, str] = {
    "-F": " It belongs to `proctor list tasks`, which shows the tasks that have an attribute.",
    "-l": " Did you mean --limit?",
    "-m": " Did you mean --model?",
    "-t": " Did you mean -T?",
}


class Value(ParamType):
    """An option's text, read by the one parser that the environment and recipes use too."""

    name = "value"

    def __init__(self, key: str, option: Option) -> None:
        self._key = key
        self._option = option

    def get_metavar(self, param: click.Parameter, *args: Any) -> str | None:
        """What stands for the value in the help."""
        option = self._option
        if option.form == "choice":
            return "|".join(option.choices)
        return option.metavar or _METAVARS.get(option.form, "VALUE")

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Choices, files, folders and the names of installed components."""
        option = self._option
        if option.metavar == "DIR":
            return [CompletionItem(incomplete, type="dir")]
        if "FILE" in option.metavar:
            return [CompletionItem(incomplete, type="file")]
        names = list(option.choices) or self._installed()
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]

    def _installed(self) -> list[str]:
        kind = {"display": "displays", "observers": "observers", "sandbox": "sandbox_providers"}.get(self._key)
        if kind is None and self._key != "model":
            return []
        from proctor import plugins

        if kind is not None:
            return plugins.names(kind)
        return [f"{name}/" for name in plugins.names("model_providers")]


class EvalParameter(click.Option):
    """A click option made from a declaration; ``group`` is the heading of its help."""

    def __init__(self, key: str, option: Option) -> None:
        self.group: str = option.group
        self.declared = option
        flag = option.form == "flag"
        spellings = [option.flag] if flag else [*option.flags]
        super().__init__(
            [key, *spellings],
            type=None if flag else Value(key, option),
            is_flag=flag,
            default=None,
            multiple=option.form in _REPEATED,
            help=_help(key, option),
            callback=_read(key, option),
        )

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The spellings and the help; a value that may be left out is written ``[=VALUE]``."""
        option = self.declared
        if option.form == "flag":
            return option.flag.replace("/", " / "), self.help or ""
        metavar = self.type.get_metavar(self, ctx) or ""
        value = metavar if metavar.startswith("[=") else f" {metavar}"
        return " / ".join([f"{option.flags[0]}{value}", *option.off_flags]), self.help or ""


class EvalCommand(click.Command):
    """A command with help in groups, values that may be left out, and close matches of misspelt options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write out what click has no form for, then parse as click does."""
        options = [param.declared for param in self.params if isinstance(param, EvalParameter)]
        try:
            return super().parse_args(ctx, _written_out(args, options))
        except click.NoSuchOption as error:
            known = [flag for param in self.params for flag in (*param.opts, *param.secondary_opts)]
            known += [flag for option in options for flag in option.off_flags]
            close = difflib.get_close_matches(error.option_name, sorted(set(known)), n=3)
            hint = f" Did you mean {' or '.join(close)}?" if close else _ELSEWHERE.get(error.option_name, "")
            raise click.UsageError(f"there is no option {error.option_name}.{hint}", ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One section a group, in the order of the table."""
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in (_EVAL_SET, *GROUPS, _OTHER)}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None:
                groups[getattr(param, "group", _OTHER)].append(record)
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records, col_max=28)


def eval_parameters(*, eval_set: bool = False, only: Collection[str] | None = None) -> list[click.Parameter]:
    """A parameter for each option of an evaluation.

    Args:
        eval_set: also those that only an eval set has.
        only: keys of the options that the command takes; all when not given.
    """
    table = full_option_table() if eval_set else option_table()
    return [EvalParameter(key, option) for key, option in table.items() if only is None or key in only]


def _help(key: str, option: Option) -> str:
    text = option.help
    if option.default:
        text += f" Default: {option.default}."
    if option.env and not option.env.startswith("PROCTOR_EVAL_"):
        text += f" [{option.env}]"
    return text


def _read(key: str, option: Option) -> Any:
    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        if value is None or value == ():
            return None
        if option.form == "flag":
            return value
        try:
            return parse_option(key, value)
        except ValueError as error:
            raise click.UsageError(f"{option.flags[0]}: {error}", ctx) from None

    return callback


def _written_out(args: Sequence[str], options: Sequence[Option]) -> list[str]:
    """``args`` with ``--flag`` as ``--flag=<bare value>`` and ``--no-flag`` as ``--flag=false``.

    ``--retry-on-error task.py`` must not take the task for its value, while ``--retry-on-error 3`` must still work:
    what follows is the value only if it reads as one.
    """
    table = full_option_table().items()
    named = [(key, option) for key, option in table if option.bare is not None and option in options]
    bare = {flag: (key, option) for key, option in named for flag in option.flags}
    off = {flag: option.flags[0] for option in options if option.form != "flag" for flag in option.off_flags}
    written: list[str] = []
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            return [*written, arg, *rest]
        if arg in off:
            written.append(f"{off[arg]}=false")
        elif arg in bare:
            key, option = bare[arg]
            value = rest.pop(0) if rest and _reads_as(key, option, rest[0]) else str(option.bare).lower()
            written.append(f"{arg}={value}")
        else:
            written.append(arg)
    return written


def _reads_as(key: str, option: Option, text: str) -> bool:
    if option.form == "bool_or_text":  # any text would do, so only an age such as 7D is taken without "="
        return text in ("true", "false") or (text[:-1].isdigit() and text[-1:] in "smhDWMY")
    try:
        parse_option(key, text)
    except ValueError:
        return text.lstrip("-").replace(".", "", 1).isdigit()  # a number out of range is a value, and gets its error
    return True

"""How an option is declared: once, beside its type, for the command line, the environment, recipes and the docs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

__all__ = ["GROUPS", "Form", "Group", "Option"]

Group: TypeAlias = Literal[
    "Eval set", "Task", "Model", "Generation", "Parallelism", "Limits", "Errors", "Log", "Display", "Plugins"
]
GROUPS: tuple[Group, ...] = (
    "Task",
    "Model",
    "Generation",
    "Parallelism",
    "Limits",
    "Errors",
    "Log",
    "Display",
    "Plugins",
)

Form: TypeAlias = Literal[
    "text",  # any text
    "choice",  # one of `choices`
    "int",
    "number",
    "flag",  # true when given; with a second flag `--no-...`, false when that is given
    "pairs",  # NAME=VALUE, repeated: a dict of typed values
    "roles",  # ROLE=MODEL or ROLE={model: ..., ...}, repeated
    "texts",  # A,B,C or repeated: a list of text
    "specs",  # NAME[:key=value,...], repeated: a list of text that keeps its commas
    "ids",  # sample ids: whole numbers become int
    "range",  # 10 or 10-20
    "tokens",  # a count that may end in k, m or b
    "threshold",  # true, false, a share or a count
    "bool_or_int",
    "adaptive",  # true, false, MAX, MIN-MAX or MIN-START-MAX
    "bool_or_text",
    "mapping",  # a JSON or YAML mapping
    "schema",  # a JSON or YAML file or mapping: a JSON schema
    "biases",  # TOKEN=BIAS,...
]


@dataclass(frozen=True, slots=True)
class Option:
    """The declaration of one option of an evaluation, as metadata of its type: ``Annotated[int, Option(...)]``.

    Args:
        flag: how it is written on the command line; ``--a/--no-a`` for one that can be turned off, several spellings
            separated by a space.
        help: one or two sentences for a reader who knows the field.
        group: the heading it stands under in ``proctor eval --help``; "Eval set" is for ``proctor eval-set`` alone.
        form: how its text is read; see ``Form``.
        env: the environment variable; empty = ``PROCTOR_EVAL_`` and the key in capitals.
        metavar: what stands for the value in the help.
        minimum: the smallest value that makes sense.
        maximum: the largest value that makes sense.
        above: the value must be more than this.
        choices: what ``choice`` allows.
        bare: the value when the flag is given without one; ``None`` = it needs one.
        default: what holds when nobody says anything, in words.
    """

    flag: str
    help: str
    group: Group
    form: Form = "text"
    env: str = ""
    metavar: str = ""
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    choices: tuple[str, ...] = ()
    bare: Any = None
    default: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """The spellings that turn it on or give its value."""
        return tuple(spelling.partition("/")[0] for spelling in self.flag.split() if spelling.partition("/")[0])

    @property
    def off_flags(self) -> tuple[str, ...]:
        """The spellings that turn it off."""
        return tuple(spelling.partition("/")[2] for spelling in self.flag.split() if spelling.partition("/")[2])

    def variable(self, key: str) -> str:
        """The environment variable that sets it, when ``key`` is its name in Python."""
        return self.env or f"PROCTOR_EVAL_{key.upper()}"

"""Reading the text of an option: command line, environment variables and recipes agree because they all come here."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.schema._option import Option
from proctor.schema._option_types import check_type
from proctor.schema._options import option_table
from proctor.schema._set_options import full_option_table

__all__ = ["SpelledValues", "check_options", "env_options", "load_config", "parse_option", "parse_scalar"]

_INT = re.compile(r"[+-]?\d+(_\d+)*")
_NUMBER = re.compile(r"[+-]?(\d[\d_]*\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?\.?(inf|nan)", re.IGNORECASE)
_SCALE = {"": 1, "k": 1_000, "m": 1_000_000, "b": 1_000_000_000}
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None}
_SWITCH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


class SpelledValues(dict[str, Any]):
    """The values of ``NAME=VALUE``, by name.

    Args:
        values: those there are.

    Attributes:
        texts: what was typed for them, by name: who knows that text is wanted can take ``0123`` as it is, not as 123.
    """

    def __init__(self, values: Mapping[str, Any] | None = None, texts: Mapping[str, str] | None = None) -> None:
        super().__init__(values or {})
        self.texts = dict(texts or {})


def parse_scalar(text: str) -> Any:
    """The value that ``text`` spells on a command line: a number, true, false, null, a list, a mapping, or text.

    ``[...]``, ``{...}`` and quoted text are read as YAML, ``a,b`` is a list of such values. Words that YAML 1.1 takes
    for truth or for dates (``no``, ``2026-01-31``) stay text.
    """
    stripped = text.strip()
    if stripped[:1] in ("[", "{", '"', "'"):
        return _yaml(stripped)
    if "," in stripped:
        return [parse_scalar(part) for part in stripped.split(",")]
    if stripped.lower() in _WORDS:
        return _WORDS[stripped.lower()]
    if _INT.fullmatch(stripped):
        return int(stripped)
    if _NUMBER.fullmatch(stripped):
        return float(stripped.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def parse_option(key: str, texts: str | Sequence[str]) -> Any:
    """The value of the option ``key`` from its text, or from all its texts when it was given several times.

    Raises:
        ValueError: if the text makes no sense; the message says what would.
    """
    option = _declared(key)
    given = [texts] if isinstance(texts, str) else list(texts)
    if option.form in _REPEATED:
        value = _REPEATED[option.form](given)
    else:
        value = _SINGLE[option.form](option, given[-1].strip() if option.form != "text" else given[-1])
    _check(option, value)
    return value


def env_options(environ: Mapping[str, str], keys: Iterable[str] | None = None) -> dict[str, Any]:
    """The options that environment variables set, all or those named by ``keys``; empty variables say nothing.

    Several ``NAME=VALUE`` or ``NAME:SETTINGS`` in one variable are separated by spaces, as a shell would split them.

    Raises:
        ValueError: if a variable's text makes no sense; the message names the variable.
    """
    found: dict[str, Any] = {}
    for key in option_table() if keys is None else keys:
        name = _declared(key).variable(key)
        text = environ.get(name, "")
        if not text:
            continue
        try:
            several = _declared(key).form in ("pairs", "roles", "specs")
            found[key] = parse_option(key, shlex.split(text) if several else text)
        except ValueError as ex:
            raise ValueError(f"Environment variable {name}={text!r}: {ex}") from None
    return found


def check_options(options: Mapping[str, Any], *, eval_set: bool = False) -> None:
    """Refuse option names that do not exist, values of the wrong type and numbers that are out of range.

    Args:
        options: values by key.
        eval_set: those that only an eval set has are allowed, too.

    Raises:
        ValueError: with the close match, the type, or the range.
    """
    table = full_option_table() if eval_set else option_table()
    for key, value in options.items():
        if key not in table:
            import difflib

            close = difflib.get_close_matches(key, table, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            command = "proctor eval-set" if eval_set else "proctor eval"
            raise ValueError(f"There is no option {key!r}.{hint} `{command} --help` lists them all.")
        if value is None:
            continue
        try:
            check_type(key, table[key], value)
            _check(table[key], value)
        except ValueError as ex:
            raise ValueError(f"Option {key}={value!r}: {ex}") from None


def _declared(key: str) -> Option:
    return full_option_table()[key]


def load_config(path: str) -> dict[str, Any]:
    """The mapping in a JSON or YAML file (``--task-config``, ``--model-config``, ``--generate-config``).

    Raises:
        ValueError: if the file can't be read or holds no mapping.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as ex:
        raise ValueError(f"The configuration file {path!r} can't be read: {ex.strerror or ex}.") from None
    except UnicodeDecodeError:
        raise ValueError(f"The configuration file {path!r} is not UTF-8 text.") from None
    value = json.loads(text) if path.endswith(".json") and _is_json(text) else _yaml(text, path)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(
            f"The configuration file {path!r} holds {type(value).__name__}, not a mapping of names to values."
        )
    return value


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _yaml(text: str, path: str | None = None) -> Any:
    import yaml  # only structures need it

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as ex:
        mark = getattr(ex, "problem_mark", None)
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        what = f"The file {path!r}" if path else f"The value {text!r}"
        raise ValueError(f"{what} is neither JSON nor YAML: {getattr(ex, 'problem', None) or ex}{where}.") from None


def _check(option: Option, value: Any) -> None:
    if option.form == "ids" and isinstance(value, Sequence) and not any(str(id).strip() for id in value):
        # A variable of a script that is empty must not make a run of nothing, nor one of everything.
        raise ValueError("it names no sample: give one id or several (3,7), or leave it out to run all.")
    if option.form == "range" and not isinstance(value, int):
        start, stop = value
        if start < 0 or stop <= start:
            raise ValueError(f"the range {start + 1}-{stop} is empty: samples count from 1, the smaller number first.")
        return
    if option.form == "choice" and isinstance(value, str) and value not in option.choices:
        raise ValueError(f"{value!r} is none of {', '.join(option.choices)}.")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if value != value or (option.minimum is not None and value < option.minimum):
        raise ValueError(f"{value:g} is too small: the smallest is {option.minimum or 0:g}.")
    if option.maximum is not None and value > option.maximum:
        raise ValueError(f"{value:g} is too large: the largest is {option.maximum:g}.")
    if option.above is not None and value <= option.above:
        raise ValueError(f"{value:g} is too small: it must be more than {option.above:g}.")


def _integer(option: Option, text: str) -> int:
    if not _INT.fullmatch(text):
        raise ValueError(f"{text!r} is not a whole number.")
    return int(text)


def _number(option: Option, text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a number.")
    return float(text)


def _flag(option: Option, text: str) -> bool:
    if text.lower() not in _SWITCH:
        raise ValueError(f"{text!r} is neither true nor false.")
    return _SWITCH[text.lower()]


def _range(option: Option, text: str) -> int | tuple[int, int]:
    # Samples are counted from 1 on the command line; in Python and in the log the pair is a slice, counted from 0.
    if match := re.fullmatch(r"(\d+)\s*[-,]\s*(\d+)", text):
        return int(match[1]) - 1, int(match[2])
    if not _INT.fullmatch(text):
        raise ValueError(f"{text!r} is neither a count (10) nor a range (10-20).")
    return int(text)


def _tokens(option: Option, text: str) -> int:
    match = re.fullmatch(r"(\d[\d_]*(?:\.\d+)?)([kmb]?)", text.lower())
    if match is None:
        raise ValueError(f"{text!r} is not a count of tokens, such as 500000, 500k or 1.5m.")
    return round(float(match[1]) * _SCALE[match[2]])


def _threshold(option: Option, text: str) -> bool | float:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is neither a share of the samples (0.1) nor a count (5).")
    number = float(text)
    # 0 tolerates no error, which is what true says; as a share it would mean the same with more words in the log.
    return True if number == 0 else number


def _bool_or_int(option: Option, text: str) -> bool | int:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return _integer(option, text)


def _bool_or_text(option: Option, text: str) -> bool | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if option.choices and text not in option.choices:
        raise ValueError(f"{text!r} is none of true, false, {', '.join(option.choices)}.")
    return text


def _adaptive(option: Option, text: str) -> bool | int | dict[str, int]:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    numbers = text.split("-")
    if not all(_INT.fullmatch(number) for number in numbers) or len(numbers) > 3:
        raise ValueError(f"{text!r} is none of true, false, MAX, MIN-MAX and MIN-START-MAX, such as 1-20-100.")
    if len(numbers) == 1:
        return int(numbers[0])
    return dict(zip(("min", "max") if len(numbers) == 2 else ("min", "start", "max"), map(int, numbers), strict=True))


def _mapping(option: Option, text: str) -> dict[str, Any]:
    value = load_config(text) if not text.startswith("{") and Path(text).is_file() else _yaml(text)
    if not isinstance(value, dict):
        raise ValueError(f"{text!r} is not a mapping, such as {{name: value}}.")
    return value


def _schema(option: Option, text: str) -> dict[str, Any]:
    value = _mapping(option, text)
    return value if "json_schema" in value else {"name": value.get("title", "response"), "json_schema": value}


def _biases(option: Option, text: str) -> dict[int, float]:
    found: dict[int, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        token, _, bias = part.partition("=")
        if not (_INT.fullmatch(token.strip()) and _NUMBER.fullmatch(bias.strip())):
            raise ValueError(f"{part!r} is not a token id and its bias, such as 42=10.")
        found[int(token)] = float(bias)
    return found


def _pairs(texts: Sequence[str]) -> SpelledValues:
    found = SpelledValues()
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"{text!r} is not NAME=VALUE.")
        key = name.strip().replace("-", "_")
        found[key] = parse_scalar(value) if value else ""
        found.texts[key] = value
    return found


def _roles(texts: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts:
        role, equals, model = text.partition("=")
        if not equals or not role.strip() or not model.strip():
            raise ValueError(f"{text!r} is not ROLE=MODEL, such as grader=openai/gpt-5.")
        value = _yaml(model) if model.strip()[:1] in ("{", "[") else _texts([model])
        found[role.strip()] = value[0] if isinstance(value, list) and len(value) == 1 else value
    return found


def _texts(texts: Sequence[str]) -> list[str]:
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def _ids(texts: Sequence[str]) -> list[str | int]:
    # 007 and 7 are two ids: only what prints back the same becomes a number.
    return [int(part) if _INT.fullmatch(part) and str(int(part)) == part else part for part in _texts(texts)]


def _specs(texts: Sequence[str]) -> list[str]:
    # Settings have commas of their own, so a text with settings is one component.
    return [spec for text in texts for spec in ([text.strip()] if ":" in text else _texts([text]))]


_REPEATED: Mapping[str, Callable[[Sequence[str]], Any]] = {
    "pairs": _pairs,
    "roles": _roles,
    "texts": _texts,
    "ids": _ids,
    "specs": _specs,
}
_SINGLE: Mapping[str, Callable[[Option, str], Any]] = {
    "text": lambda option, text: text,
    "choice": lambda option, text: text,
    "int": _integer,
    "number": _number,
    "flag": _flag,
    "range": _range,
    "tokens": _tokens,
    "threshold": _threshold,
    "bool_or_int": _bool_or_int,
    "bool_or_text": _bool_or_text,
    "adaptive": _adaptive,
    "mapping": _mapping,
    "schema": _schema,
    "biases": _biases,
}

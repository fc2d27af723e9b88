"""Options are declared once and their text is read in one place."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.schema import (
    GENERATE_FIELDS,
    GROUPS,
    UNUSED_FIELDS,
    EvalOptions,
    GenerateConfig,
    check_options,
    env_name,
    env_options,
    load_config,
    option_table,
    parse_option,
    parse_scalar,
)


def test_every_generation_setting_is_an_option() -> None:
    assert set(GenerateConfig.model_fields) == GENERATE_FIELDS | UNUSED_FIELDS
    assert not GENERATE_FIELDS & UNUSED_FIELDS
    assert set(EvalOptions.__annotations__) | {"model"} == set(option_table())


def test_no_flag_and_no_variable_stands_for_two_options() -> None:
    table = option_table()
    flags = Counter(flag for option in table.values() for flag in (*option.flags, *option.off_flags))
    variables = Counter(env_name(key) for key in table)
    assert [flag for flag, count in flags.items() if count > 1] == []
    assert [name for name, count in variables.items() if count > 1] == []
    assert all(name.startswith("PROCTOR_") for name in variables)


def test_every_option_says_what_it_does() -> None:
    for key, option in option_table().items():
        assert option.group in GROUPS, key
        assert option.help.endswith("."), key
        assert option.help[0].isupper() or not option.help[0].isalpha(), key
        assert (option.form == "choice") <= bool(option.choices), key


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-3", -3),
        ("1_000", 1000),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("null", None),
        ("no", "no"),
        ("2026-01-31", "2026-01-31"),
        ("gpt-5", "gpt-5"),
        ("a,b", ["a", "b"]),
        ("1,2", [1, 2]),
        ("[1, two]", [1, "two"]),
        ("{a: 1}", {"a": 1}),
        ('"5"', "5"),
        ("", ""),
        (" x ", " x "),
        ("1.2.3", "1.2.3"),
        ("inf", float("inf")),
    ],
)
def test_a_value_on_the_command_line_is_what_it_looks_like(text: str, value: Any) -> None:
    assert parse_scalar(text) == value
    assert type(parse_scalar(text)) is type(value)


@given(st.integers() | st.floats(allow_nan=False) | st.booleans())
def test_numbers_and_truth_survive(value: float | bool) -> None:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    assert parse_scalar(text) == value


@given(st.text())
def test_any_text_is_a_value_or_a_clean_refusal(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse_scalar(text)


@pytest.mark.parametrize(
    ("key", "texts", "value"),
    [
        ("limit", "10", 10),
        ("limit", "10-20", (9, 20)),
        ("limit", "1-1", (0, 1)),
        ("sample_id", "a,7,007", ["a", 7, "007"]),
        ("sample_id", ["a", "b,c"], ["a", "b", "c"]),
        ("epochs", "3", 3),
        ("epochs_reducer", "mean,at_least_2", ["mean", "at_least_2"]),
        ("token_limit", "500k", 500_000),
        ("token_limit", "1.5M", 1_500_000),
        ("fail_on_error", "0.1", 0.1),
        ("fail_on_error", "5", 5.0),
        ("fail_on_error", "0", True),
        ("fail_on_error", "false", False),
        ("retry_on_error", "3", 3),
        ("task_args", ["a=1", "my-name=x=y", "empty="], {"a": 1, "my_name": "x=y", "empty": ""}),
        ("model_roles", ["grader=openai/gpt-5"], {"grader": "openai/gpt-5"}),
        ("model_roles", ["grader=a/b,c/d"], {"grader": ["a/b", "c/d"]}),
        (
            "model_roles",
            ["critic={model: mock/model, temperature: 0.5}"],
            {"critic": {"model": "mock/model", "temperature": 0.5}},
        ),
        ("observers", ["lark:url=https://x,level=info", "mlflow"], ["lark:url=https://x,level=info", "mlflow"]),
        ("observers", "a,b", ["a", "b"]),
        ("model", "a/b, c/d", ["a/b", "c/d"]),
        ("logit_bias", "42=10,43=-10", {42: 10.0, 43: -10.0}),
        ("cache_prompt", "auto", "auto"),
        ("extra_headers", '{"X-Trace": "abc"}', {"X-Trace": "abc"}),
        ("response_schema", "{type: object}", {"name": "response", "json_schema": {"type": "object"}}),
        ("log_images", "no", False),
        ("temperature", "0", 0.0),
    ],
)
def test_the_text_of_an_option_becomes_its_value(key: str, texts: str | list[str], value: Any) -> None:
    assert parse_option(key, texts) == value


@pytest.mark.parametrize(
    ("key", "text", "says"),
    [
        ("limit", "0", "smallest is 1"),
        ("limit", "20-10", "is empty"),
        ("limit", "0-3", "is empty"),
        ("limit", "ten", "neither a count"),
        ("limit", "-1", "too small"),
        ("epochs", "0", "smallest is 1"),
        ("epochs", "1.5", "not a whole number"),
        ("temperature", "hot", "not a number"),
        ("temperature", "nan", "too small"),
        ("top_p", "1.5", "largest is 1"),
        ("timeout", "0", "more than 0"),
        ("log_format", "xml", "none of eval, json"),
        ("token_limit", "many", "not a count of tokens"),
        ("fail_on_error", "yes", "neither a share"),
        ("task_args", "a", "not NAME=VALUE"),
        ("task_args", "a=[1", "neither JSON nor YAML"),
        ("model_roles", "grader=", "not ROLE=MODEL"),
        ("logit_bias", "a=b", "not a token id"),
        ("extra_body", "[1]", "not a mapping"),
        ("log_images", "maybe", "neither true nor false"),
        ("cache_prompt", "often", "none of true, false, auto"),
    ],
)
def test_text_without_sense_is_refused_with_what_would_have_some(key: str, text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_option(key, text)


def test_options_come_from_the_environment_too() -> None:
    found = env_options(
        {
            "PROCTOR_EVAL_MODEL": "a/b,c/d",
            "PROCTOR_LOG_DIR": "/data/logs",
            "PROCTOR_EVAL_TASK_ARGS": "a=1 'b=two words'",
            "PROCTOR_OBSERVERS": "lark:url=x,level=info mlflow",
            "PROCTOR_EVAL_EPOCHS": "",
            "PROCTOR_ELSE": "1",
        }
    )
    assert found == {
        "model": ["a/b", "c/d"],
        "log_dir": "/data/logs",
        "task_args": {"a": 1, "b": "two words"},
        "observers": ["lark:url=x,level=info", "mlflow"],
    }


def test_a_bad_variable_is_named() -> None:
    with pytest.raises(ValueError, match=r"PROCTOR_EVAL_LIMIT='0'"):
        env_options({"PROCTOR_EVAL_LIMIT": "0"})
    assert env_options({"PROCTOR_EVAL_LIMIT": "0"}, keys=["log_dir"]) == {}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"limitt": 3}, "Did you mean 'limit'"),
        ({"limit": 0}, "smallest is 1"),
        ({"limit": (5, 5)}, "is empty"),
        ({"epochs": 0}, "smallest is 1"),
        ({"max_samples": -1}, "smallest is 1"),
        ({"async_backend": "curio"}, "none of asyncio, trio"),
    ],
)
def test_options_given_in_python_are_checked_alike(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        check_options(options)


def test_options_that_make_sense_pass() -> None:
    check_options(
        {"limit": (0, 5), "epochs": None, "fail_on_error": True, "temperature": 0, "sandbox": ("docker", "c")}
    )


def test_a_configuration_file_is_json_or_yaml(tmp_path: Path) -> None:
    as_json = tmp_path / "a.json"
    as_json.write_text(json.dumps({"a": [1]}))
    as_yaml = tmp_path / "a.yaml"
    as_yaml.write_text("a: [1]\n")
    assert load_config(str(as_json)) == load_config(str(as_yaml)) == {"a": [1]}
    empty = tmp_path / "empty.yaml"
    empty.write_text("")
    assert load_config(str(empty)) == {}


def test_a_configuration_file_that_is_none_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [1\nb")
    with pytest.raises(ValueError, match=r"broken\.yaml' is neither JSON nor YAML.*line 2"):
        load_config(str(broken))
    a_list = tmp_path / "list.json"
    a_list.write_text("[1]")
    with pytest.raises(ValueError, match="holds list"):
        load_config(str(a_list))
    with pytest.raises(ValueError, match="No such file"):
        load_config(str(tmp_path / "none.yaml"))
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not UTF-8"):
        load_config(str(binary))

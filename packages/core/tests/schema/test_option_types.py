"""Values that come from Python are checked like texts are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor.schema import ResponseSchema, SandboxSpec, check_options


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("epochs", "x", "a whole number, not str"),
        ("epochs", True, "a whole number, not bool"),
        ("temperature", "hot", "a number, not str"),
        ("token_limit", "500k", "a whole number, not str"),
        ("score", 1, "True or False, not int"),
        ("log_dir", Path("logs"), "text, not"),
        ("model_roles", "grader", "a mapping of roles to models, not str"),
        ("task_args", ["x"], "a mapping of names to values, not list"),
        ("tags", [1], "text, or a list of texts, not list"),
        ("limit", (1, 2, 3), "a count, or the first and the last + 1 of a range, not tuple"),
        ("limit", ["1", "2"], "a count, or the first and the last + 1 of a range, not list"),
        ("sample_id", 1.5, "a sample id, or a list of them, not float"),
        ("fail_on_error", "half", "True, False or a number, not str"),
        ("response_schema", "x", "a ResponseSchema, or a mapping, not str"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_the_right_one(key: str, value: Any, wanted: str) -> None:
    with pytest.raises(ValueError, match=f"Option {key}=") as raised:
        check_options({key: value})

    assert f"it must be {wanted}" in str(raised.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("epochs", 3),
        ("temperature", 1),
        ("fail_on_error", 0.1),
        ("fail_on_error", True),
        ("limit", (0, 5)),
        ("limit", [0, 5]),
        ("sample_id", ["a", 2]),
        ("tags", "one"),
        ("observers", ["a:x=1"]),
        ("cache_prompt", "auto"),
        ("sample_shuffle", 42),
        ("logit_bias", {42: 1.0}),
        ("response_schema", ResponseSchema(name="n", json_schema={})),
        ("solver", print),
        ("sandbox", SandboxSpec(type="local")),
        ("sandbox", ("docker", "compose.yaml")),
        ("epochs", None),
    ],
)
def test_right_values_pass(key: str, value: Any) -> None:
    check_options({key: value})

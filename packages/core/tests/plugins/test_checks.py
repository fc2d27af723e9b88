"""What a record says is enough to refuse a component before its SDK is imported."""

from __future__ import annotations

import pytest

from proctor.contracts import ModelProvider, PrerequisiteError, UsageError
from proctor.plugins import check_backend, missing_env, require_env


def provider(*env: tuple[str, ...], backends: tuple[str, ...] = ("asyncio", "trio")) -> ModelProvider:
    return ModelProvider(name="acme", factory=lambda name, **settings: None, env=env, backends=backends)  # type: ignore[arg-type]


TWO_WAYS = (("ACME_KEY",), ("ACME_ID", "ACME_SECRET"))


@pytest.mark.parametrize(
    ("environ", "missing"),
    [
        ({}, [("ACME_KEY",), ("ACME_ID", "ACME_SECRET")]),
        ({"ACME_ID": "x"}, [("ACME_KEY",), ("ACME_SECRET",)]),
        ({"ACME_KEY": ""}, [("ACME_KEY",), ("ACME_ID", "ACME_SECRET")]),
        ({"ACME_KEY": "x"}, []),
        ({"ACME_ID": "x", "ACME_SECRET": "y"}, []),
    ],
)
def test_one_complete_alternative_is_enough(environ: dict[str, str], missing: list[tuple[str, ...]]) -> None:
    assert missing_env(provider(*TWO_WAYS), environ) == missing


def test_a_provider_without_variables_finds_its_own_credentials() -> None:
    assert missing_env(provider(), {}) == []


def test_missing_variables_are_refused_with_all_ways() -> None:
    with pytest.raises(PrerequisiteError, match="needs ACME_KEY, or ACME_ID and ACME_SECRET in the environment"):
        require_env(provider(*TWO_WAYS), {})


def test_a_back_end_that_a_component_does_not_run_on_is_refused() -> None:
    check_backend(provider(), "trio")
    with pytest.raises(UsageError, match="'acme' runs on asyncio only, and the back-end is trio: use --async-backend"):
        check_backend(provider(backends=("asyncio",)), "trio")

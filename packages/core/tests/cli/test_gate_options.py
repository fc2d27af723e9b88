"""A gate has one name: as an option, as a keyword of ``eval()``, in the environment, in the docs, in logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_type_hints

import pytest

import proctor
from proctor import Task
from proctor.cli import parse_eval
from proctor.contracts import UsageError
from proctor.dataset import Sample
from proctor.schema import EvalOptions, env_name, env_options, option_table
from proctor.scorer import includes

PAGE = Path(__file__).parents[4] / "docs" / "command-line.md"
GATES = ("connections", "samples", "tasks", "sandboxes", "subprocesses")


def _logged(log: Any, key: str) -> Any:
    settings = log.eval.model_generate_config if key == "max_connections" else log.eval.config
    return getattr(settings, key)


def check_names(key: str) -> None:
    """The names that follow from ``key`` are those of the option, of the variable and of the page."""
    flag, variable = f"--{key.replace('_', '-')}", f"PROCTOR_EVAL_{key.upper()}"
    assert option_table()[key].flag == flag
    assert env_name(key) == variable
    assert key in get_type_hints(EvalOptions)
    assert option_table()[key].group == "Parallelism"
    line = next(line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{flag}"))
    assert f"`{key}`" in line
    assert f"`{variable}`" in line


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_has_one_name_everywhere(gate: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = f"max_{gate}"
    flag = f"--max-{gate}"
    check_names(key)
    assert parse_eval(["q.py", flag, "3"]) == (["q.py"], {key: 3})
    assert env_options({env_name(key): "3"}) == {key: 3}
    with pytest.raises(UsageError, match=f"{flag}.*smallest is 1"):
        parse_eval(["q.py", flag, "0"])
    monkeypatch.chdir(tmp_path)
    task = Task(name="one", dataset=[Sample(input="q", target="a", id=n) for n in range(4)], scorer=includes())
    options: dict[str, Any] = {key: 3}
    [log] = proctor.eval(task, model="mock/model", display="none", **options)
    assert _logged(log, key) == 3


@pytest.mark.parametrize("key", ["adaptive_connections", "max_rpm", "max_tpm"])
def test_what_moves_a_limit_has_one_name_too(key: str) -> None:
    check_names(key)

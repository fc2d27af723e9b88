"""Every hook has a page in the docs, whose example works, and a test here."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from proctor import contracts, hookspecs
from proctor.contracts import Display, ModelAPI, Observer, RunEnd, SampleEnd, SandboxDriver
from proctor.plugins import KINDS, Code, Fault, build_args
from proctor.plugins._manager import Manager
from proctor.schema import ChatMessageUser, GenerateConfig

PAGE = Path(__file__).parents[4] / "docs" / "hooks.md"
HOOKS = [name for name in hookspecs.__all__ if name != "hookimpl"]


def sections() -> dict[str, str]:
    """What the page says under each heading that names a hook."""
    parts = re.split(r"^## `(\w+)`\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.fixture
def example(manager: Callable[..., Manager], tmp_path: Path) -> Callable[[str], Manager]:
    """The page's example for a hook, as a plugin in a file."""

    def load(hook: str, **settings: Any) -> Manager:
        match = re.search(r"^```python\n(.*?)^```$", sections()[hook], re.MULTILINE | re.DOTALL)
        assert match is not None
        file = tmp_path / f"acme_{hook}.py"
        file.write_text(match[1])
        return manager(extra=[str(file)], **settings)

    return load


def test_every_hook_is_on_the_page_and_has_a_test() -> None:
    assert sorted(sections()) == sorted(HOOKS)
    assert [hook for hook in HOOKS if f"test_{hook}" not in globals()] == []


def test_every_hook_belongs_to_a_kind_with_a_group_that_the_page_names() -> None:
    assert sorted(kind.hook for kind in KINDS.values()) == sorted(HOOKS)
    assert [kind.group for kind in KINDS.values() if f"`{kind.group}`" not in sections()[kind.hook]] == []
    assert [kind.record for kind in KINDS.values() if kind.record and kind.record not in sections()[kind.hook]] == []


def test_every_specification_is_documented_and_takes_one_argument_at_most() -> None:
    for hook in HOOKS:
        function = getattr(hookspecs, hook)
        assert function.__doc__
        assert function.__code__.co_argcount <= 1
        assert function.__code__.co_kwonlyargcount == 0


def test_every_code_is_on_the_page_with_its_severity() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (\w+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert dict(rows) == {code.value: Fault(code, "", "").severity for code in Code}


@pytest.mark.anyio
async def test_proctor_model_providers(example: Callable[[str], Manager]) -> None:
    record = example("proctor_model_providers").get("model_providers", "echo")
    config, args = GenerateConfig(), build_args(record, {"prefix": "> "})

    api = record.factory("loud", base_url=None, api_key=None, config=config, args=args)
    output = await api.generate([ChatMessageUser(content="hello")], [], "none", config)

    assert isinstance(api, ModelAPI)
    assert output.completion == "> hello"


def test_proctor_sandbox_providers(example: Callable[[str], Manager]) -> None:
    record = example("proctor_sandbox_providers").get("sandbox_providers", "tidy")

    assert record.default_max_sandboxes(4) == 8
    assert isinstance(record.factory(), SandboxDriver)


def test_proctor_log_stores(example: Callable[[str], Manager]) -> None:
    record = example("proctor_log_stores").get("log_stores", "scratch")

    assert record.name == record.scheme == "scratch"
    assert isinstance(record.factory(), contracts.LogStore)


def test_proctor_displays(example: Callable[[str], Manager], capsys: pytest.CaptureFixture[str]) -> None:
    display = example("proctor_displays").get("displays", "dots").factory(None)

    display.message("well")

    assert isinstance(display, Display)
    assert capsys.readouterr().out == "well\n"


def test_proctor_observers(example: Callable[[str], Manager], tmp_path: Path) -> None:
    record = example("proctor_observers").get("observers", "tally")
    observer = record.factory(build_args(record, {"file": str(tmp_path / "tally")}))

    observer.sample_end(SampleEnd("unit", None, lambda: None))  # type: ignore[arg-type, return-value]
    observer.run_end(RunEnd(exit_code=0))

    assert isinstance(observer, Observer)
    assert (tmp_path / "tally").read_text() == "1 samples, exit code 0\n"


def test_proctor_runners(example: Callable[[str], Manager]) -> None:
    record = example("proctor_runners").get("runners", "queue")

    assert record.factory(build_args(record, {"queue": "long"})) == {"queue": "long"}


def test_proctor_partitioners(example: Callable[[str], Manager]) -> None:
    record = example("proctor_partitioners").get("partitioners", "hundreds")

    assert [len(part) for part in record.factory(None)(list(range(250)))] == [100, 100, 50]


def test_proctor_commands(example: Callable[[str], Manager]) -> None:
    record = example("proctor_commands").get("commands", "hello")

    assert CliRunner().invoke(record.factory(), ["world"]).output == "Hello, world.\n"


def test_proctor_task_packages(example: Callable[[str], Manager]) -> None:
    assert example("proctor_task_packages").get("tasks", "acme").package == "acme_tasks"


def test_proctor_startup(example: Callable[..., Manager]) -> None:
    environ = {"ACME_LOG_DIR": "there"}
    plugins = example("proctor_startup", environ=environ)

    plugins.startup()

    assert environ["PROCTOR_LOG_DIR"] == "there"
    assert plugins.faults() == []

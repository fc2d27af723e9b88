"""A factory or a method that raises, returns nothing or calls ``sys.exit()`` is a sentence that names its plugin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor import Task, eval
from proctor.cli import main
from proctor.contracts import UsageError
from proctor.dataset import Sample
from proctor.plugins import BrokenComponent
from proctor.plugins._kinds import KINDS
from proctor.plugins._manager import Manager
from proctor.schema import EvalLog
from proctor.scorer import includes

PLUGIN = """
from proctor.contracts import (
    CommandProvider, DisplayProvider, LogSink, LogStoreProvider, ModelAPI, ModelProvider, ObserverProvider,
    SandboxDriver, SandboxProvider,
)
from proctor.hookspecs import hookimpl
from proctor.log import MemoryStore
from proctor.schema import ModelOutput

WHERE, WHAT = {where!r}, {what!r}

def fault(here):
    if here != WHERE:
        return False
    if WHAT == "raise":
        raise RuntimeError("boom")
    if WHAT != "none":
        raise SystemExit(int(WHAT))
    return True

class Api(ModelAPI):
    def connection_key(self):
        fault("connection_key")
        return "key"
    async def generate(self, input, tools, tool_choice, config):
        if WHERE == "classify":
            raise OSError("lost")
        return None if fault("generate") else ModelOutput.from_content("acme/x", "yes")
    def classify(self, exc):
        return None if fault("classify") else super().classify(exc)

class Driver(SandboxDriver):
    async def check(self, config): fault("sandbox_check")
    async def sample_init(self, task, config, metadata):
        return None if fault("sample_init") else {{}}
    async def sample_cleanup(self, envs, interrupted): pass
    async def task_cleanup(self, task, config, cleanup): fault("task_cleanup")

class Store(MemoryStore):
    def check(self, folder, *, dry=False): fault("store_check")
    def create(self, name):
        fault("create")
        return Sink(super().create(name))

class Sink(LogSink):
    def __init__(self, sink): self._sink = sink
    def commit(self, segment, directory):
        fault("commit")
        self._sink.commit(segment, directory)
    def close(self): self._sink.close()

def make(here, found):
    return lambda *args, **settings: None if fault(here) else found(*args, **settings)

@hookimpl
def proctor_model_providers():
    def api(name, *, base_url, api_key, config, args):
        return Api(name, base_url=base_url, config=config)
    return [ModelProvider("acme", make("model", api))]
@hookimpl
def proctor_sandbox_providers(): return [SandboxProvider("acme", make("sandbox", Driver))]
@hookimpl
def proctor_log_stores(): return [LogStoreProvider("acme", make("store", Store))]
@hookimpl
def proctor_displays(): return [DisplayProvider("acme", make("display", object))]
@hookimpl
def proctor_observers(): return [ObserverProvider("acme", make("observer", object))]
@hookimpl
def proctor_commands(): return [CommandProvider("acme", make("command", object))]
"""
FACTORIES = {
    "model_providers": "model",
    "sandbox_providers": "sandbox",
    "log_stores": "store",
    "displays": "display",
    "observers": "observer",
    "commands": "command",
}


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(where: str, what: str) -> Path:
        file = tmp_path / f"acme_{where}_{what}.py"
        file.write_text(PLUGIN.format(where=where, what=what))
        return file

    return write


@pytest.mark.parametrize("kind", FACTORIES)
@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("none", "returned None, not a"),
        ("raise", "raised RuntimeError: boom"),
        ("0", "ended the program (SystemExit 0)"),
        ("5", "ended the program (SystemExit 5)"),
    ],
)
def test_what_a_factory_does_wrong_is_a_sentence_that_names_the_distribution(
    manager: Callable[..., Manager], distribution: Callable[..., Path], kind: str, what: str, text: str
) -> None:
    body = PLUGIN.format(where=FACTORIES[kind], what=what)
    plugins = manager(distribution("acme-make", body, entries={KINDS[kind].group: {"acme": "acme_make.hooks"}}))
    record = plugins.get(kind, "acme")
    settings = {"base_url": None, "api_key": None, "config": None, "args": None} if kind == "model_providers" else {}

    with pytest.raises(BrokenComponent) as raised:
        plugins.make(kind, record, ("x",) if settings else (), settings)

    assert f"The factory of the {KINDS[kind].noun} 'acme' (acme-make 1.0) {text}" in str(raised.value)


@pytest.mark.parametrize("kind", FACTORIES)
def test_a_factory_that_makes_something_else_is_told(
    manager: Callable[..., Manager], distribution: Callable[..., Path], kind: str
) -> None:
    group = {KINDS[kind].group: {"acme": "acme_other.hooks"}}
    plugins = manager(distribution("acme-other", PLUGIN.format(where="", what=""), entries=group))
    record = plugins.get(kind, "acme")
    object.__setattr__(record, "factory", lambda: 7)

    with pytest.raises(BrokenComponent, match=r"returned an object of type 'int', not an? \w+\. Report"):
        plugins.make(kind, record, (), {})


def test_what_a_factory_says_on_purpose_is_said_as_it_is(
    manager: Callable[..., Manager], distribution: Callable[..., Path]
) -> None:
    body = """
        from proctor.contracts import ObserverProvider, UsageError
        from proctor.hookspecs import hookimpl

        def make(args):
            raise UsageError("say where, with --observer acme:url=...")

        @hookimpl
        def proctor_observers():
            return [ObserverProvider("acme", make)]
        """
    plugins = manager(distribution("acme-says", body, entries={"proctor.observers": {"acme": "acme_says.hooks"}}))

    with pytest.raises(UsageError, match=r"^say where") as raised:
        plugins.make("observers", plugins.get("observers", "acme"), (None,), {})

    assert not isinstance(raised.value, BrokenComponent)


def _run(tmp_path: Path, file: Path, backend: str, **options: Any) -> EvalLog:
    sandbox = options.pop("sandbox", None)
    task = Task(dataset=[Sample(input="q", target="yes")], scorer=includes(), sandbox=sandbox)
    given = {"display": "none", "log_dir": str(tmp_path / "logs"), "async_backend": backend, "plugins": [str(file)]}
    (log,) = eval(task, **{"model": "mock/model", **given, **options})
    return log


BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@BACKENDS
@pytest.mark.parametrize(
    ("where", "options"),
    [
        ("model", {"model": "acme/x"}),
        ("connection_key", {"model": "acme/x"}),
        ("sandbox", {"sandbox": "acme"}),
        ("sandbox_check", {"sandbox": "acme"}),
        ("store", {"log_dir": "acme://logs"}),
        ("store_check", {"log_dir": "acme://logs"}),
    ],
)
def test_a_plugin_can_t_end_a_run_before_it_begins(
    tmp_path: Path, plugin: Callable[[str, str], Path], backend: str, where: str, options: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match=r"'acme' \(--plugin .*\) ended the program \(SystemExit 0\)"):
        _run(tmp_path, plugin(where, "0"), backend, **options)


@BACKENDS
@pytest.mark.parametrize("where", ["create", "commit"])
def test_a_store_that_ends_the_program_fails_its_task(
    tmp_path: Path, plugin: Callable[[str, str], Path], backend: str, where: str
) -> None:
    log = _run(tmp_path, plugin(where, "0"), backend, log_dir="acme://logs")

    assert log.status == "error"
    assert log.error is not None
    assert "log store 'acme'" in log.error.message
    assert "ended the program" in log.error.message


@BACKENDS
def test_a_sandbox_that_ends_the_program_when_all_is_done_changes_nothing(
    tmp_path: Path, plugin: Callable[[str, str], Path], backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = _run(tmp_path, plugin("task_cleanup", "0"), backend, sandbox="acme")

    assert log.samples
    assert "could not clean up after task" in caplog.text
    assert "The sandbox 'acme' (--plugin" in caplog.text


@BACKENDS
@pytest.mark.parametrize("what", ["none", "raise", "0"])
def test_a_broken_display_is_replaced_with_a_warning(
    tmp_path: Path, plugin: Callable[[str, str], Path], backend: str, what: str
) -> None:
    with pytest.warns(UserWarning, match="display 'acme'.* shows the run instead"):
        log = _run(tmp_path, plugin("display", what), backend, display="acme")

    assert log.status == "success"


@BACKENDS
@pytest.mark.parametrize("what", ["none", "raise", "0"])
def test_a_broken_observer_is_left_out_with_a_warning(
    tmp_path: Path, plugin: Callable[[str, str], Path], backend: str, what: str
) -> None:
    with pytest.warns(UserWarning, match="observer 'acme'.* goes on without it"):
        log = _run(tmp_path, plugin("observer", what), backend, observers=["acme"])

    assert log.status == "success"


@BACKENDS
@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("generate", "acme/x: generate() returned None, not a ModelOutput"),
        ("classify", "acme/x: classify() returned None, not a Retry"),
        ("sample_init", "sample_init() returned None, not its environments"),
    ],
)
def test_a_method_that_returns_nothing_is_the_error_of_its_sample(
    tmp_path: Path, plugin: Callable[[str, str], Path], backend: str, where: str, text: str
) -> None:
    options = {"sandbox": "acme"} if where == "sample_init" else {"model": "acme/x"}

    log = _run(tmp_path, plugin(where, "none"), backend, **options)

    assert log.samples
    assert log.samples[0].error is not None
    assert text in log.samples[0].error.traceback


@pytest.mark.parametrize(("what", "text"), [("none", "returned None, not a Command"), ("0", "ended the program")])
def test_a_command_that_is_not_made_says_so(
    monkeypatch: pytest.MonkeyPatch,
    plugin: Callable[[str, str], Path],
    capsys: pytest.CaptureFixture[str],
    what: str,
    text: str,
) -> None:
    monkeypatch.setenv("PROCTOR_PLUGINS", str(plugin("command", what)))

    assert main(["acme"]) == 2
    assert "The factory of the command 'acme' (--plugin " in (said := capsys.readouterr().err)
    assert text in said

"""A log store that outsiders wrote, from the contract alone: it passes the suite, and everything works on it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from proctor import plugins
from proctor.cli import main
from proctor.contracts import LogStore
from proctor.log import list_eval_logs, read_eval_log
from proctor_testkit import LogStoreSuite

PLUGIN = Path(__file__).parents[1] / "examples" / "sqlite_store" / "proctor_sqlite_store.py"
_spec = spec_from_file_location("proctor_sqlite_store", PLUGIN)
assert _spec is not None and _spec.loader is not None
sqlite_store = module_from_spec(_spec)
_spec.loader.exec_module(sqlite_store)

TASK = """
from proctor import Task, task
from proctor.dataset import Sample
from proctor.scorer import includes

@task
def two():
    return Task(dataset=[Sample(input="q", target="Default", id=n) for n in (1, 2)], scorer=includes())
"""


class TestSqliteStore(LogStoreSuite):
    capabilities = frozenset({"leases", "processes", "dying_leases", "failing"})

    def fill(self, store: LogStore, names: list[str]) -> None:
        path, _ = sqlite_store._split(names[0])
        with sqlite_store._writing(path) as db:  # one transaction for all
            for key in (sqlite_store._split(name)[1] for name in names):
                db.execute("INSERT INTO segments VALUES (?, 0, x'78')", (key,))
                db.execute("INSERT INTO logs VALUES (?, x'', 1, 'e', 1.0)", (key,))

    @pytest.fixture
    def store(self) -> LogStore:
        store: LogStore = sqlite_store.SqliteStore()
        return store

    @pytest.fixture
    def name(self, tmp_path: Path) -> str:
        return f"{tmp_path}/runs.sqlite/logs/a.eval"

    @pytest.fixture
    def opener(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[], LogStore]:
        monkeypatch.syspath_prepend(str(PLUGIN.parent))
        monkeypatch.setitem(sys.modules, "proctor_sqlite_store", sqlite_store)
        opener: Callable[[], LogStore] = sqlite_store.SqliteStore
        return opener

    @pytest.fixture
    def failing(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[LogStore], AbstractContextManager[None]]:
        @contextmanager
        def failing(store: LogStore) -> Iterator[None]:
            connect = sqlite_store.sqlite3.connect

            def small(*args: Any, **options: Any) -> Any:
                db = connect(*args, **options)
                db.execute("PRAGMA max_page_count = 1")  # as large as it is
                return db

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sqlite_store.sqlite3, "connect", small)
                yield

        return failing


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[str]:
    (tmp_path / "two.py").write_text(TASK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROCTOR_PLUGINS", str(PLUGIN))
    plugins.configure()
    yield f"{request.param}/{tmp_path.name}" if request.param == "memory://" else f"{request.param}{tmp_path}/r.db/one"
    monkeypatch.delenv("PROCTOR_PLUGINS")
    plugins.configure()


@pytest.mark.parametrize("folder", ["sqlite://", "memory://"], indirect=True)
def test_everything_works_on_a_store(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    # given an evaluation whose log is in a store
    assert main(["eval", "two.py", "--model", "mock/model", "--log-dir", folder, "--display", "none"]) == 0
    [info] = list_eval_logs(folder)
    assert (info.task, read_eval_log(info).status) == ("two", "success")
    # then it is listed
    capsys.readouterr()
    assert main(["log", "list", "--log-dir", folder, "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row["name"] == info.name
    # and printed
    assert main(["log", "dump", info.name]) == 0
    assert [sample["id"] for sample in json.loads(capsys.readouterr().out)["samples"]] == [1, 2]
    # and recovered where its end is missing
    store, name = _store_of(info.name)
    whole = store.read(name)
    store.replace(name, [whole[: whole.index(b"summaries.json") - 30]], if_match=store.stat(name).etag)
    assert main(["log", "recover", info.name]) == 0
    assert "2 of 2 samples" in capsys.readouterr().out
    assert len(list_eval_logs(folder)) == 2


def _store_of(location: str) -> tuple[LogStore, str]:
    from proctor.log import store_for

    return store_for(location)

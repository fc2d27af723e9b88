from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from proctor import Task, plugins, task
from proctor.contracts import TaskPackage, UsageError
from proctor.engine import find_tasks, list_tasks
from proctor.engine._options import resolve_options
from proctor.schema import parse_option

GOOD = '''
from pathlib import Path
from proctor import Task, task
import neighbour

@task
def first(n: int = 2):
    """The first task."""
    assert Path("data.txt").read_text() == "here"
    return Task(metadata={"n": n, "neighbour": neighbour.WORD})

@task(name="renamed", light=True)
def second(needed):
    return Task()

def helper():
    return Task()
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "neighbour.py").write_text("WORD = 'next door'")
    (tmp_path / "data.txt").write_text("here")
    return tmp_path


def _refused(spec: object, *words: str) -> None:
    with pytest.raises(UsageError) as raised:
        for source in find_tasks(spec):
            source.load({})
    for word in words:
        assert word in str(raised.value)


def test_a_file_s_tasks_are_listed_without_running_it(folder: Path) -> None:
    (folder / "raises.py").write_text("from proctor import task\n@task\ndef t(): ...\nraise SystemExit(5)")
    (folder / "broken.py").write_text("@task\ndef (")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "x.py").write_text(GOOD)
    with pytest.warns(UserWarning, match=r"broken\.py:2 is no Python.*left out"):
        found = {info.name: info for info in list_tasks(folder)}
    assert set(found) == {"first", "renamed", "t"}
    assert found["first"].doc == "The first task."
    assert found["first"].params == {"n": "2"}
    assert found["renamed"].attribs == {"light": True}
    assert found["renamed"].params == {"needed": ""}


def test_a_task_runs_in_its_own_folder_and_sees_its_neighbours(folder: Path) -> None:
    before = os.getcwd()
    [source] = find_tasks(f"{folder}/good.py@first")
    loaded = source.load({"n": 5})
    assert loaded.metadata == {"n": 5, "neighbour": "next door"}
    assert (loaded.name, loaded.folder, os.getcwd()) == ("first", str(folder), before)


def test_a_folder_a_function_and_an_object_are_tasks_too(folder: Path) -> None:
    assert [source.name for source in find_tasks(folder)] == ["first", "renamed"]

    @task
    def inline() -> Task:
        return Task()

    assert [source.name for source in find_tasks([inline, Task(name="made")])] == ["inline", "made"]


def test_what_is_no_task_is_refused_with_what_to_do(folder: Path) -> None:
    (folder / "empty.py").write_text("x = 1")
    (folder / "raises.py").write_text("import nowhere_to_be_found\n")
    (folder / "twice.py").write_text(
        "from proctor import Task, task\n@task\ndef a(): return Task()\n@task(name='a')\ndef b(): return Task()"
    )
    (folder / "other.py").write_text(
        "from proctor import Task, task\n@task\ndef first(): return Task()\n@task\ndef boom(): return 1 / 0\n"
        "@task\ndef none(): pass\n"
    )
    _refused(f"{folder}/god.py", "god.py", "did you mean", "good.py")
    _refused(f"{folder}/good.py@frist", "'frist'", "did you mean 'first'")
    _refused(f"{folder}/empty.py", "empty.py", "@task")
    _refused(f"{folder}/data.txt", "Python file")
    _refused(f"{folder}/raises.py", "nowhere_to_be_found", "line 1")
    _refused(f"{folder}/twice.py", "two tasks", "'a'")
    _refused([f"{folder}/good.py@first", f"{folder}/other.py@first"], "two tasks", "good.py", "other.py")
    _refused(f"{folder}/other.py@boom", "ZeroDivisionError", "line 5")
    _refused(f"{folder}/other.py@none", "NoneType", "return Task")
    _refused(42, "int")
    _refused(f"{folder}/good.py@", "good.py@ names no task", "good.py@NAME")
    _refused(f"{folder}@", "names no task")
    _refused(f"{folder}/good.py@first,renamed", "one by one", "good.py@first ", "good.py@renamed")


def test_a_broken_file_of_a_folder_is_no_task_less_but_an_error(folder: Path) -> None:
    (folder / "syntax.py").write_text("from proctor import task\n@task\ndef x(:\n")
    (folder / "async.py").write_text("from proctor import Task, task\n@task\nasync def slow(): return Task()\n")
    _refused(folder, "syntax.py:3 is no Python", "async.py:3", "write def, not async def", "Mend them")
    _refused(f"{folder}@first", "syntax.py:3")
    (folder / "syntax.py").write_text("from proctor import task\nimport nowhere_to_be_found\n@task\ndef x(): ...\n")
    (folder / "async.py").unlink()
    _refused(folder, "syntax.py can't be loaded", "nowhere_to_be_found")


def test_an_async_task_is_refused_where_it_is_written(folder: Path) -> None:
    (folder / "async.py").write_text("from proctor import Task, task\n@task(a=1)\nasync def slow(): return Task()\n")
    for ask in (list_tasks, find_tasks):
        with pytest.raises(UsageError, match=r"async\.py:3: the task 'slow' is an async .*write def, not async def"):
            ask(folder / "async.py")
    with pytest.warns(UserWarning, match="write def, not async def.*left out"):
        assert {info.name for info in list_tasks(folder)} == {"first", "renamed"}
    with pytest.raises(UsageError, match="write def, not async def"):

        @task
        async def slow() -> Task:  # type: ignore[arg-type]  # that is the fault
            return Task()


def test_arguments_are_checked_by_name(folder: Path) -> None:
    [first, renamed] = find_tasks(folder / "good.py")
    with pytest.raises(UsageError, match=r"'m'.*it takes n"):
        first.load({"m": 1})
    with pytest.raises(UsageError, match="needs needed"):
        renamed.load({})
    assert renamed.load({"needed": 1}).name == "renamed"


def test_a_file_in_two_folders_is_two_modules(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "t.py").write_text(
            f"from proctor import Task, task\n@task\ndef {name}(): return Task(metadata={{'from': {name!r}}})"
        )
    loaded = [source.load({}) for source in find_tasks(tmp_path)]
    assert [each.metadata["from"] for each in loaded] == ["one", "two"]


def test_arguments_become_what_their_annotations_say(tmp_path: Path) -> None:
    (tmp_path / "typed.py").write_text(
        "from __future__ import annotations\nfrom typing import Literal\nfrom proctor import Task, task\n"
        "@task\n"
        "def typed(cot: bool = True, n: int | None = None, share: float = 0, name: str = '',\n"
        "          how: Literal['a'] = 'a'):\n"
        "    return Task(metadata={'got': [cot, n, share, name, how]})\n"
    )
    [source] = find_tasks(tmp_path / "typed.py")
    loaded = source.load({"cot": "no", "n": 3, "share": 1, "name": 7})
    assert loaded.metadata["got"] == [False, 3, 1.0, "7", "a"]
    with pytest.raises(UsageError, match="-T cot=maybe does not fit its type: give true or false"):
        source.load({"cot": "maybe"})
    for wrong in ({"n": "abc"}, {"cot": "maybe"}, {"n": 1.5}, {"how": "b"}):
        with pytest.raises(UsageError, match=f"-T {next(iter(wrong))}="):
            source.load(wrong)


@pytest.mark.parametrize(
    ("hint", "text", "wanted"),
    [
        ("str", "0123", "0123"),
        ("str", "1.10", "1.10"),
        ("str", "1e5", "1e5"),
        ("str", "true", "true"),
        ("str", "null", "null"),
        ("str", "a,b", "a,b"),
        ("str", '"a b"', "a b"),
        ("str", "", ""),
        ("str | None", "null", None),
        ("str | None", "007", "007"),
        ("int", "1e5", 100_000),
        ("float", "3", 3.0),
        ("bool", "1", True),
        ("Literal['1', '2']", "2", "2"),
        ("Literal[1, 2]", "2", 2),
        ("list[str]", "0123,2", ["0123", "2"]),
        ("list[str]", "astronomy", ["astronomy"]),
        ("list[int]", "3", [3]),
        ("list[int]", "[1, 2]", [1, 2]),
        ("list[str]", "", []),
        ("str | list[str]", "a,b", ["a", "b"]),
        ("Path", "1.10", Path("1.10")),
        ("Any", "007", 7),
        ("dict[str, int]", "{a: 1}", {"a": 1}),
    ],
)
def test_what_was_typed_is_read_as_the_type_that_is_wanted(
    tmp_path: Path, hint: str, text: str, wanted: object
) -> None:
    (tmp_path / "typed.py").write_text(
        "from pathlib import Path\nfrom typing import Any, Literal\nfrom proctor import Task, task\n"
        f"@task\ndef typed(x: {hint}): return Task(metadata={{'got': x}})\n"
    )
    (tmp_path / "more.yaml").write_text("{}")
    options = {"task_args": parse_option("task_args", f"x={text}"), "task_config": str(tmp_path / "more.yaml")}
    [source] = find_tasks(tmp_path / "typed.py")

    got = source.load(resolve_options(options).task_args).metadata["got"]

    assert (got, type(got)) == (wanted, type(wanted))


@pytest.mark.parametrize("source", [b"@task\ndef (", b"@task\n\xff", b"@task\n\0", b"# coding: nonsense\n@task\n"])
def test_a_file_that_is_no_python_is_named_with_its_line(tmp_path: Path, source: bytes) -> None:
    (tmp_path / "broken.py").write_bytes(source)
    for ask in (list_tasks, find_tasks):
        with pytest.raises(UsageError, match=r"broken\.py"):
            ask(tmp_path / "broken.py")
    (tmp_path / "broken.py").write_bytes(b"@task\ndef (")
    with pytest.raises(UsageError, match=r"broken\.py:2 .*SyntaxError.*def \("):
        list_tasks(tmp_path / "broken.py")


def test_a_file_says_its_encoding_itself(tmp_path: Path) -> None:
    source = (
        "# -*- coding: latin-1 -*-\nfrom proctor import Task, task\n@task(name='caf\u00e9')\ndef t(): return Task()\n"
    )
    (tmp_path / "latin.py").write_bytes(source.encode("latin-1"))
    assert [info.name for info in list_tasks(tmp_path)] == ["caf\u00e9"]
    assert [source.name for source in find_tasks(tmp_path)] == ["caf\u00e9"]


def test_what_python_warns_of_in_a_file_hides_no_task(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text("from proctor import Task, task\nX = '\\d'\n@task\ndef t(): return Task()\n")
    assert [info.name for info in list_tasks(tmp_path)] == ["t"]


@pytest.mark.anyio
async def test_a_file_that_evaluates_when_it_is_imported_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs.py").write_text(
        "from proctor import Task, eval, task\n@task\ndef t(): return Task()\neval(t(), model='mock/model')\n"
    )
    with pytest.raises(UsageError, match=r"runs\.py can't be loaded.*__main__.*line 4"):
        find_tasks(tmp_path)


def test_a_file_that_was_changed_in_the_same_second_is_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a file that was loaded where Python keeps compiled copies
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "quick.py"
    text = "from proctor import Task, task\n\n@task\ndef quick():\n    return Task(metadata={'n': 1})\n"
    file.write_text(text)
    [first] = find_tasks(str(file))
    assert first.load({}).metadata == {"n": 1}
    before = file.stat()
    # when it gets other content of the same size, and no other time
    file.write_text(text.replace("1", "2"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    # then that is what is loaded, and nothing was left beside it
    [second] = find_tasks(str(file))
    assert second.load({}).metadata == {"n": 2}
    assert os.listdir(tmp_path) == ["quick.py"]


def test_tasks_of_a_package_whose_name_is_not_its_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a package of tasks that is called otherwise than what it offers
    package = tmp_path / "proctor_tasks_planets"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "orbits.py").write_text("from proctor import Task, task\n@task\ndef orbits(): return Task()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(plugins, "names", lambda kind: ["planets"])
    monkeypatch.setattr(plugins, "get", lambda kind, name: TaskPackage(name, "proctor_tasks_planets"))

    assert [source.name for source in find_tasks("planets/orbits")] == ["orbits"]
    with pytest.raises(UsageError, match=r"package planets has no task 'rings': it has orbits"):
        find_tasks("planets/rings")

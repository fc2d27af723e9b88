"""Reference pages of the plugin contracts, a page each, from signatures and docstrings: `docs/reference/*.md`."""

from __future__ import annotations

import ast
import copy
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import public_api

FOLDER = public_api.ROOT / "docs" / "reference"
CONTRACTS = "proctor.contracts"

# Each page: its title, its hook, and the names of proctor.contracts on it, in an order in which the examples can run.
PAGES = {
    "models": (
        "Models",
        "proctor_model_providers",
        (
            "ModelAPI",
            "Retry",
            "RateLimits",
            "record_call",
            "CallRecord",
            "current_call",
            "ModelFactory",
            "ModelProvider",
            "DEFAULT_CONNECTIONS",
            "MockArgs",
        ),
    ),
    "sandboxes": (
        "Sandboxes",
        "proctor_sandbox_providers",
        (
            "SandboxEnvironment",
            "ExecResult",
            "SandboxConnection",
            "ExecTimeoutError",
            "OutputLimitExceededError",
            "SandboxUserUnsupportedError",
            "SandboxBrokenError",
            "SandboxOwner",
            "RunningSandbox",
            "SandboxDriver",
            "SandboxProvider",
        ),
    ),
    "log-stores": (
        "Log stores",
        "proctor_log_stores",
        ("LogStore", "LogSink", "LogLease", "Stat", "LogBusyError", "LogStoreProvider"),
    ),
    "displays": (
        "Displays",
        "proctor_displays",
        (
            "UnitSnapshot",
            "UnitStatus",
            "MetricSnapshot",
            "GateSnapshot",
            "SampleSnapshot",
            "RunSnapshot",
            "Display",
            "MessageLevel",
            "DisplayProvider",
        ),
    ),
    "observers": (
        "Observers",
        "proctor_observers",
        (
            "UnitInfo",
            "RunStart",
            "TaskStart",
            "SampleEnd",
            "TaskEnd",
            "RunRow",
            "RunEnd",
            "Observer",
            "ObserverProvider",
        ),
    ),
    "runners": ("Runners", "proctor_runners", ("RunnerProvider",)),
    "partitioners": ("Partitioners", "proctor_partitioners", ("PartitionerProvider",)),
    "commands": ("Commands", "proctor_commands", ("CommandProvider",)),
    "task-packages": ("Task packages", "proctor_task_packages", ("TaskPackage",)),
    "startup": ("Startup", "proctor_startup", ("StartupContext",)),
    "errors": ("Errors that a person reads", "", ("UsageError", "PrerequisiteError")),
}
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Example):$", re.MULTILINE)
GENERATED = "<!-- Written by docs/generate.py from the docstrings: change those. -->"
EXAMPLES = "The examples of this page go on from one another, and a test runs them."


def pages() -> dict[Path, str]:
    """Every page and its text, the index among them."""
    texts = {FOLDER / f"{name}.md": _page(name) for name in PAGES}
    lines = [
        GENERATED,
        "# Reference of the contracts",
        "",
        "What a plugin implements and returns, from the docstrings of `proctor.contracts` and `proctor.hookspecs`.",
        "[Plugins](../plugins.md) says how one is made and found; [Hooks](../hooks.md) has a whole one of each kind.",
        "",
    ]
    for name, (title, _, items) in PAGES.items():
        lines.append(f"- [{title}]({name}.md): {', '.join(f'`{item}`' for item in items)}")
    texts[FOLDER / "README.md"] = "\n".join([*lines, ""])
    return texts


def _page(name: str) -> str:
    title, hook, items = PAGES[name]
    lines = [GENERATED, f"# {title}", ""]
    if hook:
        _, [node] = public_api.find("proctor.hookspecs", hook)
        assert isinstance(node, ast.FunctionDef)
        text = _text(ast.get_docstring(node) or "")
        lines += [f"Hook [`{hook}`](../hooks.md#{hook}): {text[0].lower()}{text[1:]}", ""]
    lines += [EXAMPLES, ""]
    for item in items:
        lines += _item(item)
    return "\n".join(lines).rstrip() + "\n"


def _item(name: str) -> Iterator[str]:
    """One public name: its signature, what it is, and its methods."""
    home, nodes = public_api.find(CONTRACTS, name)
    node = nodes[-1]
    yield from (f"## `{name}`", "")
    if isinstance(node, ast.ClassDef):
        fields = [
            line for line in public_api.members(home, node) if not re.match(r"(@\w+ )*(async )?def |self\.", line)
        ]
        yield from _code([public_api.head(node) + (":" if fields else ""), *(f"    {line}" for line in fields)])
        yield from _described(ast.get_docstring(node) or "")
        yield from _attributes(node)
        yield from _methods(name, node)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _code([public_api.signature(node)])
        yield from _described(ast.get_docstring(node) or "")
    else:
        yield from _code([ast.unparse(node)])
        yield from _described(_following(home, node))


def _attributes(node: ast.ClassDef) -> Iterator[str]:
    """The attributes of a class that have a docstring of their own."""
    described = [
        f"- `{ast.unparse(first.target)}`: {_inline(second.value.value)}"
        for first, second in zip(node.body, node.body[1:], strict=False)
        if isinstance(first, ast.AnnAssign)
        and isinstance(second, ast.Expr)
        and isinstance(second.value, ast.Constant)
        and isinstance(second.value.value, str)
    ]
    if described:
        yield from (*described, "")


def _methods(owner: str, node: ast.ClassDef) -> Iterator[str]:
    for item in node.body:
        if not isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) or not ast.get_docstring(item):
            continue
        if item.name.startswith("_") and item.name != "__call__":
            continue
        decorators = {ast.unparse(decorator) for decorator in item.decorator_list}
        must = " (a plugin must implement it)" if "abstractmethod" in decorators else ""
        yield from (f"### `{owner}.{item.name}`{must}", "")
        shown = copy.copy(item)  # the tree is shared
        shown.decorator_list = [each for each in item.decorator_list if ast.unparse(each) != "abstractmethod"]
        yield from _code(public_api.signature(shown).splitlines())
        yield from _described(ast.get_docstring(item) or "")


def _described(docstring: str) -> Iterator[str]:
    """A docstring as Markdown: its text, then its sections."""
    text, *rest = SECTION.split(docstring)
    yield from (_text(text), "")
    for section, body in zip(rest[::2], rest[1::2], strict=True):
        # What belongs to a section is indented.
        inside = re.match(r"(?:\n(?: .*)?)*", body)
        assert inside is not None
        yield from _section(section, inspect.cleandoc(inside[0]))
        if after := _text(body[inside.end() :]):
            yield from (after, "")


def _section(name: str, body: str) -> Iterator[str]:
    if name == "Example":
        yield from ("```pycon", *body.splitlines(), "```", "")
    elif name == "Returns":
        yield from (f"Returns: {_inline(body)}", "")
    else:
        if name == "Raises":
            yield from ("Raises:", "")
        for entry in re.split(r"\n(?=\S)", body):
            key, _, meaning = entry.partition(": ")
            yield f"- `{key}`: {_inline(meaning)}"
        yield ""


def _following(module: str, node: ast.stmt) -> str:
    """The docstring that stands below an assignment."""
    body = public_api.tree(module).body
    after = body[body.index(node) + 1]
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
        return after.value.value
    return ""


def _code(lines: list[str]) -> Iterator[str]:
    # `py`, not `python`: a signature is nothing that a test can run.
    decorators = re.match(r"(?:@[\w.]+(?:\([^)]*\))? )*", lines[0])
    assert decorators is not None
    lines = [re.sub(r"'([^'\"\\]*)'", r'"\1"', line) for line in lines]
    first = [*decorators[0].replace(" @", "\n@").split("\n"), lines[0][decorators.end() :]]
    yield from ("```py", *(line.rstrip() for line in first if line), *lines[1:], "```", "")


def _text(text: str) -> str:
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text.replace("``", "`")).strip()


def _inline(text: str) -> str:
    return " ".join(_text(text).split())

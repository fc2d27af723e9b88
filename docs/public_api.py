"""The public API as text, a file for each public module: what somebody else's code may rely on.

Read from the syntax, without importing anything: the text is the same on every Python, whatever is installed.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).parents[1]
SNAPSHOT = ROOT / "tests" / "repo" / "api"
WIDEST_VALUE = 80  # of a constant, in characters; what is longer is data, not interface
WIDEST_LINE = 120

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign | ast.AnnAssign


@cache
def modules() -> dict[str, Path]:
    """Every module of the packages, by its importable name."""
    found = {}
    for path in sorted(ROOT.glob("packages/*/src/**/*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts[3:]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements at the top, and those under an ``if`` such as ``if TYPE_CHECKING``."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from _statements(node.body)
            yield from _statements(node.orelse)


def _targets(node: ast.stmt) -> list[str]:
    """The names that an assignment binds."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _defines(node: ast.stmt, name: str) -> TypeGuard[Definition]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name == name
    return name in _targets(node)


@cache
def exported(module: str) -> tuple[str, ...]:
    """The names in the module's ``__all__``."""
    for node in tree(module).body:
        if isinstance(node, ast.Assign) and _targets(node) == ["__all__"]:
            return tuple(ast.literal_eval(node.value))
    return ()


def public_modules() -> list[str]:
    """The modules with public names: no part of their own name is private."""
    return [name for name in modules() if not any(part.startswith("_") for part in name.split(".")) and exported(name)]


def find(module: str, name: str) -> tuple[str, list[Definition]]:
    """The module that defines what ``module`` calls ``name``, and the definition (one for each overload).

    A name that ``module`` has from another public module is not followed: that module, and no definition.
    """
    found: list[Definition] = []
    for node in _statements(tree(module).body):
        if _defines(node, name):
            found.append(node)
        elif isinstance(node, ast.ImportFrom) and node.module and not found:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    if node.module in modules() and alias.name not in exported(node.module):
                        return find(node.module, alias.name)
                    home = node.module
                    private = any(part.startswith("_") for part in home.split("."))
                    return find(home, alias.name) if private and home in modules() else (home, [])
    if not found:
        raise LookupError(f"{module} exports {name}, and neither defines nor imports it")
    return module, found


def api(module: str) -> str:
    """The public names of ``module`` in the order of the alphabet, with all that belongs to them."""
    parts = [f"# {module}: what others may rely on. After a change that is meant: python docs/generate.py --api", ""]
    for name in sorted(exported(module)):
        home, nodes = find(module, name)
        parts += [*(_lines(home, nodes) or [f"from {home} import {name}"]), ""]
    return "\n".join(parts)


def snapshot() -> dict[Path, str]:
    """The text of every public module, by the file that keeps it."""
    return {SNAPSHOT / f"{name}.txt": api(name) for name in public_modules()}


def _lines(module: str, nodes: list[Definition]) -> list[str]:
    lines: list[str] = []
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            lines += [head(node), *textwrap.indent("\n".join(members(module, node)), "    ").splitlines()]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines.append(signature(node))
        else:
            lines.append(_value(module, node))
    return lines


def head(node: ast.ClassDef) -> str:
    bases = ", ".join(ast.unparse(base) for base in [*node.bases, *node.keywords])
    return f"{_decorators(node)}class {node.name}" + (f"({bases})" if bases else "")


def _decorators(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    shown = [ast.unparse(decorator) for decorator in node.decorator_list]
    return "".join(f"@{text} " for text in shown if not text.startswith("pytest."))


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    arguments = [_spaced(item) for item in _split(ast.unparse(node.args))]
    start, end = f"{_decorators(node)}{word} {node.name}(", f"){returns}"
    line = f"{start}{', '.join(arguments)}{end}"
    return line if len(line) <= WIDEST_LINE else "\n".join([start, *(f"    {item}," for item in arguments), end])


def _spaced(argument: str) -> str:
    """An argument with an annotation and a default as people write it: ``name: int = 0``."""
    name, equals, default = argument.partition("=")
    return f"{name} = {default}" if equals and ":" in name else argument


def _split(arguments: str) -> list[str]:
    """The arguments one by one: cut at the commas that stand in no bracket."""
    items, depth = [""], 0
    for character in arguments:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            items.append("")
        else:
            items[-1] += character
    return [item.strip() for item in items]


def _value(module: str, node: ast.Assign | ast.AnnAssign) -> str:
    text = ", ".join(_targets(node))
    if isinstance(node, ast.AnnAssign):
        text += f": {_annotation(node.annotation)}"
    if node.value is not None:
        value = ast.unparse(_private_constant(module, node.value) or node.value)
        alias = isinstance(node, ast.Assign) or text.endswith("TypeAlias")
        text += f" = {value if len(value) <= WIDEST_VALUE or (alias and '[' in value[:20]) else '...'}"
    return text


def _private_constant(module: str, node: ast.expr) -> ast.expr | None:
    """What ``node`` stands for, when it names a private constant: a reader of the text can't look there."""
    if isinstance(node, ast.Name) and node.id.startswith("_"):
        [definition, *_] = find(module, node.id)[1]
        return definition.value if isinstance(definition, ast.Assign) else None
    return None


def _annotation(node: ast.expr) -> str:
    """The annotation; of ``Annotated`` the type, and the flag that an option has on the command line."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Annotated" and isinstance(node.slice, ast.Tuple):
        kind, *extra = node.slice.elts
        flags = [
            str(call.args[0].value)
            for call in extra
            if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Constant)
        ]
        return " ".join([ast.unparse(kind), *flags])
    return ast.unparse(node)


def members(module: str, node: ast.ClassDef) -> list[str]:
    """The class's public fields, attributes and methods, with those of bases that are not public themselves."""
    lines = []
    for item in node.body:
        if isinstance(item, ast.Assign | ast.AnnAssign):
            lines += [_value(module, item)] if not all(name.startswith("_") for name in _targets(item)) else []
        elif isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            if not item.name.startswith("_") or item.name.endswith("__"):
                lines.append(signature(item))
            if item.name == "__init__":
                lines += [f"self.{name}" for name in _attributes(item)]
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0]
        try:
            home, definitions = find(module, name)
        except LookupError:  # of the language itself
            continue
        if not any(name in exported(other) for other in public_modules()):
            for definition in definitions:
                lines += members(home, definition) if isinstance(definition, ast.ClassDef) else []
    return list(dict.fromkeys(lines))


def _attributes(init: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The public attributes that ``__init__`` sets."""
    found = {
        node.attr
        for node in ast.walk(init)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    }
    return sorted(name for name in found if not name.startswith("_"))

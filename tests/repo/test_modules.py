"""Rooms and their names: private modules, public names in `__all__`, and no module that hides a function."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest
from repo_files import PACKAGES, module_name, offenders, relative, sources, tree

# Modules whose public name is a contract: other people write it in an entry point, in an import or in a command.
PUBLIC_MODULES = {"__main__", "hooks", "hookspecs", "plugin"}
IMPORT_NAMES = {path.name: next(path.glob("src/*/__init__.py")).parent.name for path in PACKAGES}

rooms = [path for path in sources() if path.name == "__init__.py"]
modules = [path for path in sources() if path.name != "__init__.py"]


def exported(path: Path) -> list[str] | None:
    """The names in the literal ``__all__`` of ``path``."""
    for node in tree(path).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            value = getattr(node, "value", None)
            assert isinstance(value, ast.List | ast.Tuple), "__all__ is a literal list"
            return [str(ast.literal_eval(item)) for item in value.elts]
    return None


def imports(path: Path) -> list[tuple[str, str]]:
    """``(module, name)`` of every import; the name is empty for ``import module``."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found += [(node.module or "", alias.name) for alias in node.names]
    return found


def test_a_module_inside_a_room_is_private() -> None:
    assert [relative(path) for path in modules if path.stem[0] != "_" and path.stem not in PUBLIC_MODULES] == []


@pytest.mark.parametrize("path", rooms, ids=module_name)
def test_what_a_room_exports_is_there_and_public(path: Path) -> None:
    names = exported(path) or []

    room = importlib.import_module(module_name(path))

    assert [name for name in names if name.startswith("_") and name != "__version__"] == []
    assert len(names) == len(set(names))
    assert [name for name in names if not hasattr(room, name)] == []


@pytest.mark.parametrize("path", rooms, ids=module_name)
def test_what_a_room_imports_publicly_is_exported(path: Path) -> None:
    names = exported(path)
    package = module_name(path)
    own = [node for node in tree(path).body if isinstance(node, ast.ImportFrom)]
    public = [
        alias.asname or alias.name
        for node in own
        if (node.module or "").startswith(package + ".")
        for alias in node.names
        if not (alias.asname or alias.name).startswith("_")
    ]

    assert names is not None or not public, "a room with public names has __all__"
    assert sorted(set(public) - set(names or [])) == []


@pytest.mark.parametrize("path", rooms, ids=module_name)
def test_no_module_is_named_like_a_public_function_of_its_room(path: Path) -> None:
    neighbours = {other.stem for other in path.parent.glob("*.py")} | {
        other.parent.name for other in path.parent.glob("*/__init__.py")
    }

    assert not neighbours & set(exported(path) or [])


def test_private_names_stay_in_their_room() -> None:
    """A room uses another through what that one exports; a plugin uses the core so, too."""
    ours = re.compile(rf"(?:{'|'.join(IMPORT_NAMES.values())})(?:\.|$)")

    def private(path: Path) -> list[str]:
        home = module_name(path if path.name == "__init__.py" else path.parent / "__init__.py")
        return [
            f"{module}.{name}".rstrip(".")
            for module, name in imports(path)
            if ours.match(module)
            and module != home
            and not module.startswith(home + "._")
            and any(part.startswith("_") and part != "__version__" for part in [*module.split("."), name])
        ]

    assert offenders(sources(), private) == {}


def test_folders_distributions_and_import_packages_are_named_alike() -> None:
    for folder, name in IMPORT_NAMES.items():
        assert name == ("proctor" if folder == "core" else f"proctor_{folder.replace('-', '_')}")

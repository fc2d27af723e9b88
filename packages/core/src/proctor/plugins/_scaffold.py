"""``proctor plugins new``: a package that works, with the tests of its contract.

Each folder of ``templates`` is such a package as it stands, by the name of Acme; writing one is a copy in which that
name is another.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proctor.contracts import UsageError
from proctor.plugins._kinds import KINDS, Kind, suggestion
from proctor.plugins._known import KNOWN
from proctor.plugins._manager import Manager
from proctor.plugins._scan import normalized

TEMPLATES: Final = Path(__file__).parent / "templates"
NEW: Final[dict[str, tuple[Kind, str]]] = {
    "model-provider": (KINDS["model_providers"], "provider"),
    "sandbox": (KINDS["sandbox_providers"], "sandbox"),
    "log-store": (KINDS["log_stores"], "log"),
    "display": (KINDS["displays"], "display"),
    "observer": (KINDS["observers"], "observer"),
    "command": (KINDS["commands"], "command"),
    "tasks": (KINDS["tasks"], "tasks"),
}
"""What can be written: the word for it, its kind, and the word in the distribution's name."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class NewPackage:
    """A package that was written.

    Args:
        kind: the kind of its component, one of ``KINDS``.
        name: what its component is called.
        distribution: what the package is called.
        folder: where it is.
        files: its files, relative to the folder.
    """

    kind: str
    name: str
    distribution: str
    folder: str
    files: tuple[str, ...]


def write_package(manager: Manager, word: str, name: str, parent: str | Path = ".") -> NewPackage:
    """Write a new package into a folder of its own in ``parent``.

    Args:
        manager: knows which names are taken.
        word: what it is to be, one of ``NEW``.
        name: what its component is to be called: small letters, digits and single hyphens.
        parent: is made if it is not there.

    Raises:
        UsageError: if there is no such kind, the name is none or is taken, or something is in the way.
    """
    if word not in NEW:
        raise UsageError(f"There is no kind of plugin {word!r} that can be written.{suggestion(word, list(NEW))}")
    kind, middle = NEW[word]
    distribution = f"proctor-{middle}-{name}"
    _check_name(kind, name)
    _check_free(manager, kind, name, distribution)
    folder = Path(parent) / distribution
    if folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder} is there already: choose another name, or another folder with --dir.")
    words = _words(middle, name, _class_word(TEMPLATES / word, name))
    files: list[str] = []
    try:
        for source in _files(TEMPLATES / word):
            target = _renamed(source.relative_to(TEMPLATES / word).as_posix(), words)
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            (folder / target).write_text(_renamed(source.read_text("utf-8"), words), encoding="utf-8")
            files.append(target)
    except OSError as error:
        raise UsageError(f"{folder} can't be written: {error}. Name another place with --dir.") from error
    return NewPackage(kind.name, name, distribution, str(folder), tuple(files))


def _check_name(kind: Kind, name: str) -> None:
    if _NAME.fullmatch(name) is None or len(name) > _LONGEST or keyword.iskeyword(name):
        raise UsageError(
            f"{name!r} can't be the name of a {kind.noun}: it takes small letters, digits and single hyphens, begins "
            f"with a letter, has at most {_LONGEST} characters and is no word of Python, as in 'acme' or 'acme-2'."
        )


def _check_free(manager: Manager, kind: Kind, name: str, distribution: str) -> None:
    if name in kind.reserved:
        raise UsageError(f"{name!r} is a {kind.noun} of the core's own, which no plugin can replace. Choose another.")
    for info in manager.inventory():
        if (info.kind, info.name) == (kind.name, name):
            raise UsageError(
                f"The {kind.noun} {name!r} is offered by {info.distribution}, and only one of two plugins could be "
                "used under that name. Choose another."
            )
        if normalized(info.distribution) == distribution:
            raise UsageError(f"{distribution} is installed already. Choose another name.")
    if (known := KNOWN.get(kind.name, {}).get(name)) is not None:
        raise UsageError(
            f"The {kind.noun} {name!r} comes with {known}: whoever installs both could use neither. Choose another."
        )


def _class_word(folder: Path, name: str) -> str:
    """What stands for Acme in names of classes; another word where one of them would be that of a contract."""
    word = "".join(part.capitalize() for part in name.split("-"))
    used = {found for path in _files(folder) for found in re.findall(r"\w+", path.read_text("utf-8"))}
    own = {found for found in used if "Acme" in found}
    return f"Own{word}" if any(found.replace("Acme", word) in used for found in own) else word


def _words(middle: str, name: str, word: str) -> tuple[tuple[str, str], ...]:
    """What takes the place of what; the longest come first."""
    module = name.replace("-", "_")
    return (
        (f"proctor_{middle}_acme", f"proctor_{middle}_{module}"),
        ("ACME", module.upper()),
        ("Acme", word),
        ("acme", name),
    )


def _renamed(text: str, words: tuple[tuple[str, str], ...]) -> str:
    # In one pass: a new name may hold one of the old.
    new = dict(words)
    return re.sub("|".join(new), lambda found: new[found[0]], text)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path

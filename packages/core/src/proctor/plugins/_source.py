"""Files of a user's own, as modules."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from types import CodeType

__all__ = ["source_spec"]


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Runs what stands in the file now.

    Python takes its own compiled copy for current when the file has the same size and was changed in the same second: a
    number that was edited and run at once would be the old one's. Nor is a folder of compiled files left beside it.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def source_spec(name: str, path: str | Path) -> importlib.machinery.ModuleSpec:
    """How the Python file ``path`` becomes a module called ``name``: compiled anew, whatever was compiled before."""
    spec = importlib.util.spec_from_file_location(name, path, loader=_SourceLoader(name, str(path)))
    assert spec is not None  # it has a loader
    return spec

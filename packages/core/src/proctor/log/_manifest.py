"""The headers of all logs of a folder in one file, which tools read in place of the logs."""

from __future__ import annotations

import os
from typing import Any

from proctor.log._json import encode
from proctor.log._list import list_eval_logs, read_headers
from proctor.log._location import join, store_for
from proctor.schema import EvalLog

__all__ = ["write_log_dir_manifest"]


def write_log_dir_manifest(log_dir: str, *, filename: str = "logs.json") -> str:
    """Write ``{relative name: header}`` of the logs in ``log_dir`` and below; what can't be read is left out. Blocks.

    Args:
        log_dir: the folder.
        filename: of the manifest there.

    Returns:
        The location of the manifest.
    """
    log_dir = os.fspath(log_dir)
    store, folder = store_for(log_dir)
    head = f"{log_dir.rstrip('/')}/"
    headers: dict[str, Any] = {}
    infos = list_eval_logs(log_dir)
    for info, header in zip(infos, read_headers([info.name for info in infos]), strict=True):
        if isinstance(header, EvalLog):
            name = info.name if "://" in log_dir else os.path.relpath(info.name, folder).replace(os.sep, "/")
            headers[name.removeprefix(head)] = header
    store.replace(join(folder, filename), [encode(headers, indent=2)])
    return join(log_dir, filename)

"""The sandbox of a sample: which one it is, what belongs to it, and what is looked at before the first request."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from proctor import plugins
from proctor.contracts import RunningSandbox, UsageError
from proctor.dataset import IterableDataset, MemoryDataset
from proctor.engine._unit import Unit
from proctor.sandbox import check_sandbox, folder_of
from proctor.schema import Sample, SandboxSpec

__all__ = ["check_sandboxes", "kept_text", "picked_up", "rooted", "sample_spec", "start_seconds"]

_LOOKED_AT = 10_000  # samples in memory that are looked at
_READ = 20  # samples that are read from a file to be looked at
_LONGEST_PATH = 4096
_FILE_ENDINGS = (".yaml", ".yml", ".json", ".toml", ".dockerfile")
_SHOWN = 20  # sandboxes that were kept
_START = 600.0
"""Seconds that the sandbox of a sample with a time limit has at least to be there."""


def start_seconds(time_limit: float | None) -> float | None:
    """How long making a sandbox may take: as long again as the sample has; None without a time limit."""
    return None if time_limit is None else max(_START, time_limit)


def picked_up(spec: SandboxSpec | None, folder: str | None) -> SandboxSpec | None:
    """``spec`` with the configuration that lies in the task's folder, if it names none.

    Args:
        spec: as the task or the sample names it.
        folder: that of the task's file; ``None`` = it has none.
    """
    if spec is None or spec.config is not None or folder is None:
        return spec
    for name in plugins.get("sandbox_providers", spec.type).config_files:
        if os.path.isfile(os.path.join(folder, name)):
            return spec.model_copy(update={"config": name})
    return spec


def sample_spec(unit: Unit, sample: Sample) -> SandboxSpec | None:
    """The sandbox of ``sample``: its own, or that of its task, whose configuration it shares if it names none."""
    spec, of_task = sample.sandbox, unit.sandbox
    if spec is None or (spec.config is None and of_task is not None and spec.type == of_task.type):
        return of_task
    return picked_up(spec, unit.task.folder)


def rooted(spec: SandboxSpec, sample: Sample, folder: str | None) -> tuple[SandboxSpec, Sample]:
    """Files that a task names relative to its own folder, by their full paths."""
    if isinstance(spec.config, str):
        spec = spec.model_copy(update={"config": _full(spec.config, folder)})
    if sample.files:
        sample = sample.model_copy(
            update={"files": {name: _full(value, folder) for name, value in sample.files.items()}}
        )
    return spec, sample


def _full(value: str, folder: str | None) -> str:
    if folder is None or not value or len(value) > _LONGEST_PATH or "\n" in value:
        return value  # a text, not a path
    path = os.path.join(folder, value)
    # Unlike Path.exists() it never raises, whatever the text: a name too long, half a character, a NUL.
    return path if os.path.exists(path) else value


def kept_text(kept: Mapping[str, Sequence[RunningSandbox]], run_id: str) -> str:
    """How a person gets into the sandboxes that a run keeps, and how they are taken away."""
    lines = ["Kept, since --no-sandbox-cleanup was given:"]
    for provider, found in kept.items():
        for each in found[:_SHOWN]:
            owner = each.owner
            sample = f"sample {owner.sample}, epoch {owner.epoch}" if owner is not None and owner.sample else "shared"
            lines.append(f"  {sample} ({provider} {each.id}, {each.state})")
            if each.connection is not None:
                lines.append(f"    enter:  {each.connection.command}")
            lines.append(f"    remove: proctor sandbox cleanup {provider} {each.id}")
        if len(found) > _SHOWN:
            lines.append(f"  {len(found) - _SHOWN} more: proctor sandbox list")
        lines.append(f"  remove all of them: proctor sandbox cleanup {provider} {run_id}")
    return "\n".join(lines)


# Before the first request


async def check_sandboxes(units: Sequence[Unit]) -> None:
    """Warn of what has no effect, and refuse what can't work.

    Raises:
        UsageError: for a provider that can't be used (what it needs is not installed, or does not answer), or a
            configuration that is not there or makes no sense.
    """
    seen: set[int] = set()
    known: set[str] = set()
    for unit in units:
        if id(unit.task) in seen:  # several models may share a task
            continue
        seen.add(id(unit.task))
        if unit.sandbox is not None:
            await _check_sandbox(unit.sandbox, unit, known)
        for sample in _some_samples(unit):
            await _check_sample(sample, unit, known)


async def _check_sample(sample: Sample, unit: Unit, known: set[str]) -> None:
    where = f", sample {sample.id!r}"
    spec = sample_spec(unit, sample)
    if spec is None:
        if (key := f"no sandbox {id(unit)}") not in known and (sample.files or sample.setup):
            known.add(key)
            _warn(
                f"sample {sample.id!r} of task {unit.name!r} has {'files' if sample.files else 'a setup script'} for a "
                "sandbox, but there is none: they are not used. Name one with --sandbox, or Task(sandbox=...)"
            )
        return
    if spec is not unit.sandbox:
        await _check_sandbox(spec, unit, known, where)
    for name, value in (sample.files or {}).items():
        _tell_folder(name, value, unit, known, where)


def _tell_folder(name: str, value: str, unit: Unit, known: set[str], where: str) -> None:
    """Say that a text which is a mark rather than a name (``.``, ``..``, ``/``, ``~``) is taken for a folder."""
    if any(char.isalnum() for char in value) or (folder := folder_of(_full(value, unit.task.folder))) is None:
        return
    if (key := f"folder {id(unit)} {value}") not in known:
        known.add(key)
        _warn(
            f"task {unit.name!r}{where}: the contents {value!r} of the file {name!r} name a folder: all files in "
            f"{folder.resolve()} are copied into the sandbox. If the text itself is meant, write 'data:,{value}'"
        )


def _some_samples(unit: Unit) -> Iterator[Sample]:
    """The first samples; what can't be read is left to the run, which records it."""
    dataset = unit.samples.dataset
    if isinstance(dataset, IterableDataset):
        return
    most = _READ
    if isinstance(dataset, MemoryDataset):
        # Most have nothing to look at, which is seen without the copies that reading makes.
        if not any(sample.sandbox or sample.files or sample.setup for sample in dataset.samples):
            return
        most = _LOOKED_AT
    with suppress(Exception):
        yield from islice(unit.samples, most)


async def _check_sandbox(spec: SandboxSpec, unit: Unit, known: set[str], where: str = "") -> None:
    if (key := f"{unit.task.folder} {spec!r}") in known:
        return
    known.add(key)
    record: Any = plugins.get("sandbox_providers", spec.type)
    plugins.check_backend(record, unit.options.async_backend)
    _check_file(spec, record.config_files, unit, where)
    if spec.config is not None and not record.takes_config:
        _warn(f"task {unit.name!r}{where}: the sandbox {spec.type!r} takes no configuration: it is not used")
    try:
        await check_sandbox(rooted(spec, Sample(input=""), unit.task.folder)[0])
    except UsageError as error:
        raise type(error)(f"task {unit.name!r}{where}: {error}") from error


def _check_file(spec: SandboxSpec, names: Sequence[str], unit: Unit, where: str) -> None:
    if not isinstance(spec.config, str) or not _is_file_name(spec.config, names):
        return
    path = Path(unit.task.folder or ".", spec.config)
    if not os.path.exists(path):
        raise UsageError(
            f"task {unit.name!r}{where}: the configuration {spec.config!r} of the sandbox {spec.type!r} is not "
            f"there: looked for {path}"
        )


def _is_file_name(config: str, names: Sequence[str]) -> bool:
    """Whether ``config`` is a path, not settings of the provider's own (``key=value``) or a name of some image."""
    if "=" in config or "\n" in config:
        return False
    name = os.path.basename(config)
    return name in names or name.lower().endswith(_FILE_ENDINGS) or name == "Dockerfile"


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=4)

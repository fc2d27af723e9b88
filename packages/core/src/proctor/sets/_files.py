"""The files beside the logs of a set, as the peer's tools know them: its id, its tasks, the headers of its logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from proctor.contracts import LogBusyError, LogStore, UsageError
from proctor.log import join_location, store_for, to_json
from proctor.schema import EvalSpec, ModelConfig, short_uuid

__all__ = ["held_set", "read_set_id", "write_set"]

_ID = ".eval-set-id"
_SET = "eval-set.json"
_LONGEST = 200  # bytes of an id; more is something else


def read_set_id(log_dir: str) -> str | None:
    """The id of the set that ``log_dir`` holds; ``None`` in a folder without one. Blocks."""
    store, folder = store_for(log_dir)
    return _read(store, join_location(folder, _ID))


@contextmanager
def held_set(log_dir: str, wanted: str | None = None) -> Iterator[str]:
    """Hold the set in ``log_dir``, so that no other run works on it, and tell its id. Blocks.

    Args:
        log_dir: the folder of the set; it need not be there.
        wanted: the id of a new set; made up when not given.

    Raises:
        UsageError: another run works on it, or it has another id than ``wanted``.
    """
    store, folder = store_for(log_dir)
    name = join_location(folder, _ID)
    with suppress(FileExistsError):  # a name to hold; who holds it writes the id
        store.create(name).close()
    try:
        lease = store.hold(name)
    except LogBusyError as error:
        who = f"process {error.pid}" if error.pid is not None else "another process"
        where = f" on {error.host}" if error.host else ""
        raise UsageError(
            f"the eval set in {log_dir} is being run by {who}{where}: wait until it is done (`proctor status` shows "
            "it), or give this one a folder of its own with --log-dir"
        ) from error
    with lease:
        found = _read(store, name)
        if found is None:
            found = wanted or short_uuid()
            store.replace(name, [found.encode()])
        if wanted is not None and found != wanted:
            raise UsageError(
                f"{log_dir} holds the eval set {found}, not {wanted}: leave --id out to go on with it, or give the new "
                "set a folder of its own"
            )
        yield found


def write_set(log_dir: str, set_id: str, specs: Sequence[EvalSpec]) -> None:
    """Write which tasks the set has, in its order. Blocks.

    Args:
        log_dir: the folder of the set.
        set_id: of the set.
        specs: what is evaluated, one a unit.
    """
    store, folder = store_for(log_dir)
    tasks = [_task(spec, place) for place, spec in enumerate(specs)]
    content = to_json({"eval_set_id": set_id, "tasks": tasks}, indent=2)
    store.replace(join_location(folder, _SET), [content])


def _task(spec: EvalSpec, place: int) -> dict[str, Any]:
    facts = {
        "name": spec.task,
        "task_id": spec.task_id,
        "task_file": spec.task_file,
        "task_args": spec.task_args_passed,
        "model": spec.model,
        "model_args": spec.model_args,
        "model_roles": None
        if spec.model_roles is None
        else {role: _names(at) for role, at in spec.model_roles.items()},
        "sequence": place,
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def _names(models: ModelConfig | list[ModelConfig]) -> str:
    return ",".join(each.model for each in (models if isinstance(models, list) else [models]))


def _read(store: LogStore, name: str) -> str | None:
    with suppress(FileNotFoundError):
        text = store.read(name, 0, _LONGEST + 1).decode("utf-8", "replace").strip()
        if text and len(text) <= _LONGEST:
            return text
    return None

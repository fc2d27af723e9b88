"""Runs in the peer's Python: reads logs as its users do, one request (JSON) a line, one answer a line.

Warnings are errors, so an answer means that the peer took the log for its own without a word.
"""

import json
import sys
import warnings
from pathlib import Path

from inspect_ai._eval.evalset import eval_set_id_for_log_dir, read_eval_set_info
from inspect_ai.log import (
    EvalLog,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
    read_eval_log_samples,
    write_eval_log,
)

warnings.simplefilter("error")


def dump(record):
    return json.loads(json.dumps(record.model_dump(mode="python", exclude_none=True), default=str))


def full(path, resolve="full"):
    return dump(read_eval_log(path, resolve_attachments=resolve))


def header(path):
    return dump(read_eval_log(path, header_only=True))


def summaries(path):
    return [dump(row) for row in read_eval_log_sample_summaries(path)]


def sample(path, id, epoch=1):
    return dump(read_eval_log_sample(path, id=id, epoch=epoch, resolve_attachments="full"))


def sample_by_uuid(path, uuid):
    return dump(read_eval_log_sample(path, uuid=uuid, resolve_attachments="full"))


def samples(path, required=True):
    return [dump(one) for one in read_eval_log_samples(path, all_samples_required=required, resolve_attachments="full")]


def names(folder):
    return [dump(info) for info in list_eval_logs(folder)]


def eval_set(folder):
    """What it takes the folder for: the id of the set, its tasks, and the headers in the manifest."""
    manifest = json.loads(Path(folder, "logs.json").read_text())
    return {
        "id": eval_set_id_for_log_dir(folder),
        "set": dump(read_eval_set_info(folder)),
        "headers": {name: dump(EvalLog.model_validate(header)) for name, header in manifest.items()},
    }


def rewrite(path, target):
    write_eval_log(read_eval_log(path), target)
    return target


def main():
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            answer = {"value": globals()[name](**arguments)}
        except BaseException as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()

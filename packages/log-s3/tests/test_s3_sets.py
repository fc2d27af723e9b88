"""An eval set in a bucket."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor import Task, eval_set
from proctor.contracts import UsageError
from proctor.dataset import Sample
from proctor.scorer import includes
from proctor.sets import held_set
from proctor_testkit import FaultProxy


def test_a_set_in_a_bucket_is_completed_found_complete_and_held(proxy: FaultProxy, s3: Any, bucket: str) -> None:
    task = Task(name="quiz", dataset=[Sample(input="q", target="Default", id=1)], scorer=includes())
    options: dict[str, Any] = {"model": ["mock/a", "mock/b"], "display": "none", "log_dir": f"s3://{bucket}/set"}
    s3.put_object(Bucket=bucket, Key="set/notes.txt", Body=b"mine")
    success, logs = eval_set(task, **options)
    assert success
    again, same = eval_set(task, **options)
    assert again and [log.location for log in same] == [log.location for log in logs]

    keys = {row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]}
    files = {".eval-set-id", "eval-set.json", "logs.json", "notes.txt"}
    assert keys == {f"set/{name}" for name in files} | {log.location.removeprefix(f"s3://{bucket}/") for log in logs}
    id = s3.get_object(Bucket=bucket, Key="set/.eval-set-id")["Body"].read().decode()
    tasks = json.loads(s3.get_object(Bucket=bucket, Key="set/eval-set.json")["Body"].read())
    assert (len(id), tasks["eval_set_id"]) == (22, id)
    headers = json.loads(s3.get_object(Bucket=bucket, Key="set/logs.json")["Body"].read())
    assert sorted(f"s3://{bucket}/set/{name}" for name in headers) == sorted(log.location for log in logs)

    with held_set(options["log_dir"]), pytest.raises(UsageError, match="is being run by"):
        eval_set(task, **options)

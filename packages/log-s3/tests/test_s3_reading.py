"""Reading moves what is asked for, and a listing costs as many requests as it has pages."""

from __future__ import annotations

import json
import re
import struct
import zipfile
import zlib
from bisect import bisect_right
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from moto.s3.models import s3_backends
from serving import serving

from proctor.cli import main
from proctor.contracts import UsageError
from proctor.log import (
    EvalLog,
    LogWriter,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample,
    recover_eval_log,
    write_eval_log,
)
from proctor.schema import EvalConfig, EvalDataset, EvalPlan, EvalSample, EvalSpec, EvalStats
from proctor_log_s3._store import S3Store
from proctor_testkit import FaultProxy


def spec(samples: int) -> EvalSpec:
    return EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        run_id="run",
        eval_id="eval",
        task="t",
        task_id="task",
        model="mock/model",
        dataset=EvalDataset(samples=samples, sample_ids=list(range(1, samples + 1))),
        config=EvalConfig(),
    )


def sample(id: int, text: str = "answer") -> EvalSample:
    return EvalSample(id=id, epoch=1, input="question", target="answer", metadata={"text": text})


class BigLog:
    """A log of 1 GB: 2,000 samples of half a megabyte, whose bytes are made when they are read."""

    def __init__(self) -> None:
        self.parts: list[tuple[int, bytes]] = []
        self.size = 0
        directory, count = b"", 0
        body = sample(500).model_dump_json().encode().ljust(500_000)
        header = EvalLog(eval=spec(2000), status="success").model_dump_json(exclude={"samples"}).encode()
        for name, data in [(f"samples/{id}_epoch_1.json", body) for id in range(1, 2001)] + [("header.json", header)]:
            info = zipfile.ZipInfo(name)
            info.CRC, info.compress_size, info.file_size = zlib.crc32(data), len(data), len(data)
            crc = (info.CRC, len(data), len(data), len(name), 0, 0, 0, 0, 0, self.size)
            directory += struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 0, 0, 33, *crc) + name.encode()
            self._add(info.FileHeader())
            self._add(data)
            count += 1
        end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(directory), self.size, 0)
        self._add(directory + end)

    def _add(self, data: bytes) -> None:
        self.parts.append((self.size, data))
        self.size += len(data)

    def read(self, start: int, end: int) -> bytes:
        index = bisect_right(self.parts, start, key=lambda part: part[0]) - 1
        found = b""
        while start + len(found) < end:
            begin, data = self.parts[index]
            found += data[start + len(found) - begin : end - begin]
            index += 1
        return found


class BigLogHandler(BaseHTTPRequestHandler):
    """What S3 says to HEAD and ranged GET."""

    protocol_version = "HTTP/1.1"
    log = BigLog()

    def do_GET(self) -> None:
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        start, end = (int(wanted[1]), min(int(wanted[2]) + 1, self.log.size)) if wanted else (0, self.log.size)
        self.send_response(206 if wanted else 200)
        for name, value in {
            "Content-Length": str(end - start),
            "Content-Range": f"bytes {start}-{end - 1}/{self.log.size}",
            "ETag": '"etag"',
            "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(self.log.read(start, end))

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_a_header_and_one_sample_of_a_log_of_1_gb_move_less_than_a_megabyte(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a server with such a log, and a proxy that counts
    server = ThreadingHTTPServer(("127.0.0.1", 0), BigLogHandler)
    with serving(server), FaultProxy(f"http://127.0.0.1:{server.server_address[1]}") as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.base_url)
        # when its header is read, and one sample
        header = read_eval_log("s3://bucket/big.eval", header_only=True)
        one = read_eval_log_sample("s3://bucket/big.eval", id=500)
        # then not much more than these went over the network
        assert (header.status, one.id, one.input) == ("success", 500, "question")
        assert BigLogHandler.log.size > 1_000_000_000
        assert proxy.downloaded < 1_000_000
        assert len(proxy.requests) <= 14


def test_2000_logs_are_listed_with_a_request_for_each_thousand(proxy: FaultProxy, bucket: str) -> None:
    behind = s3_backends["123456789012"]["aws"]  # the server's own objects: 2,000 requests would take half a minute
    for number in range(2000):
        behind.put_object(bucket, f"logs/2026-01-01T00-00-00-00-00_t_{number:04}.eval", b"x")
    before = len(proxy.requests)

    found = list_eval_logs(f"s3://{bucket}/logs")

    assert len(found) == 2000 and {info.task for info in found} == {"t"}
    assert len(proxy.requests) - before == 2


def test_a_log_in_a_listing_costs_three_requests(
    proxy: FaultProxy, bucket: str, capsysbinary: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        log = EvalLog(eval=spec(1), status="success", samples=[sample(1)])
        write_eval_log(log, f"s3://{bucket}/2026-01-01T00-00-00-00-00_t_{number}.eval")
    before = len(proxy.requests)

    assert main(["log", "list", "--log-dir", f"s3://{bucket}"]) == 0

    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert len(lines) == 5 and all("success" in line and "s3://" in line for line in lines)
    assert len(proxy.requests) - before == 1 + 5 * 3


def test_running_logs_are_listed_as_one_thing_and_nothing_else_is(store: S3Store, bucket: str) -> None:
    sink = store.create(f"{bucket}/x/a.eval")
    for _ in range(3):
        sink.commit(b"12345", b"end")
    store.replace(f"{bucket}/x/b.eval", [b"whole"])
    store.replace(f"{bucket}/x/deep/c.eval", [b"whole"])

    deep = {name: stat.size for name, stat in store.list(f"{bucket}/x")}
    flat = {name: stat.size for name, stat in store.list(f"{bucket}/x/", recursive=False)}

    assert flat == {f"{bucket}/x/a.eval": 18, f"{bucket}/x/b.eval": 5}
    assert deep == flat | {f"{bucket}/x/deep/c.eval": 5}
    sink.close()


def test_a_running_log_is_read_dumped_and_recovered(
    store: S3Store, bucket: str, tmp_path: Any, capsysbinary: Any
) -> None:
    # given a run that is at work: two samples are done
    writer = LogWriter.open(f"s3://{bucket}/logs", spec(3), EvalPlan())
    writer.write(sample(1))
    writer.write(sample(2))
    while writer.backlog or len(read_eval_log(writer.location).samples or []) < 2:
        pass
    # then its log can be looked at
    assert read_eval_log(writer.location, header_only=True).status == "started"
    assert read_eval_log_sample(writer.location, id=2).id == 2
    assert main(["log", "dump", writer.location]) == 0
    assert len(json.loads(capsysbinary.readouterr().out)["samples"]) == 2
    assert main(["log", "list", "--log-dir", f"s3://{bucket}/logs"]) == 0
    assert b"started" in capsysbinary.readouterr().out
    # and not be recovered, until it is dead
    with pytest.raises(UsageError, match="alive"):
        recover_eval_log(writer.location)
    location = writer.finish("success", None, EvalStats())
    assert [one.id for one in read_eval_log(location).samples or []] == [1, 2]


def test_the_log_of_a_dead_run_is_recovered_from_its_segments(s3: Any, store: S3Store, bucket: str) -> None:
    writer = LogWriter.open(f"s3://{bucket}/logs", spec(3), EvalPlan())
    writer.write(sample(1), on_ack=lambda row: None)
    name = writer.location[5:]
    while store.stat(name).size < 700:
        pass
    # what a killed process leaves: the objects as they are now
    copy = name.replace("_t_", "_dead_")
    for row in s3.list_objects_v2(Bucket=bucket)["Contents"]:
        if not row["Key"].endswith(".lease"):
            source = {"Bucket": bucket, "Key": row["Key"]}
            s3.copy_object(Bucket=bucket, Key=row["Key"].replace("_t_", "_dead_"), CopySource=source)
    writer.finish("success", None, EvalStats())

    made = recover_eval_log(f"s3://{copy}")

    assert [one.id for one in read_eval_log(made).samples or []] == [1]


def test_a_reader_of_a_running_log_goes_on_when_it_is_finished(store: S3Store, bucket: str) -> None:
    name = f"{bucket}/a.eval"
    sink = store.create(name)
    sink.commit(b"0123456789", b"directory")
    other = S3Store()
    assert other.stat(name).size == 19 and other.read(name, 2, 5) == b"234"

    sink.close()

    assert other.read(name, 2, 5) == b"234" and other.read(name) == b"0123456789directory"


def test_a_folder_whose_name_begins_like_another_is_not_listed(store: S3Store, bucket: str) -> None:
    store.replace(f"{bucket}/logs/a.eval", [b"1"])
    store.replace(f"{bucket}/logs-old/b.eval", [b"1"])

    assert [name for name, _ in store.list(f"{bucket}/logs")] == [f"{bucket}/logs/a.eval"]
    assert len(list(store.list(bucket))) == 2


@pytest.mark.parametrize("moment", [r"^GET /[^/]*/a\.eval$", "^HEAD", "^GET .*list-type", "^GET .*parts"])
def test_a_log_that_is_finished_in_the_middle_of_a_read_is_read_whole(
    store: S3Store, proxy: FaultProxy, upstream: str, bucket: str, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    # given a running log, whose writer finishes it between two requests of a reader
    with monkeypatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", upstream)
        sink = S3Store().create(f"{bucket}/a.eval")
        sink.commit(b"0123456789", b"directory")

    def finish(method: str, path: str) -> None:
        if re.search(moment, f"{method} {path}"):
            proxy.on_request = None
            sink.close()

    for read in (store.read, lambda name: store.read(name, 0, 19)):
        proxy.on_request = finish
        assert read(f"{bucket}/a.eval") == b"0123456789directory"


def test_a_log_that_is_finished_while_it_is_listed_has_its_size(
    store: S3Store, proxy: FaultProxy, upstream: str, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", upstream)
        sink = S3Store().create(f"{bucket}/logs/a.eval")
        sink.commit(b"0123456789", b"")
    seen = store._client.call

    def call(operation: str, place: Any, **arguments: Any) -> Any:
        reply = seen(operation, place, **arguments)
        if operation == "list_objects_v2" and arguments["Prefix"] == "logs/":
            sink.close()
        return reply

    monkeypatch.setattr(store._client, "call", call)

    assert [stat.size for _, stat in store.list(f"{bucket}/logs", recursive=False)] == [10]

"""What stands in the bucket while a log is written, what that costs, and what is left when it breaks off."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.contracts import LogBusyError
from proctor_log_s3._segments import Segment, Segments, _directory, is_part
from proctor_log_s3._sink import _common
from proctor_log_s3._store import S3Store
from proctor_testkit import FaultProxy

MIB = 1 << 20


def keys(s3: Any, bucket: str) -> list[str]:
    return [row["Key"] for row in s3.list_objects_v2(Bucket=bucket).get("Contents", ())]


def test_a_log_is_segments_while_it_is_written_and_one_object_afterwards(store: S3Store, s3: Any, bucket: str) -> None:
    sink = store.create(f"{bucket}/a.eval")
    sink.commit(b"one", b"d1")
    sink.commit(b"two", b"d1d2")
    assert keys(s3, bucket) == [
        "a.eval",
        "a.eval.lease",
        "a.eval.parts/000001-3-0",
        "a.eval.parts/000002-3-2",
    ]

    sink.close()

    assert keys(s3, bucket) == ["a.eval"]
    assert s3.get_object(Bucket=bucket, Key="a.eval")["Body"].read() == b"onetwod1d2"


def test_a_large_log_goes_up_in_parts_along_with_the_run(proxy: FaultProxy, s3: Any, bucket: str) -> None:
    store = S3Store(part=5 * MIB)
    rand = random.Random(1)
    content = rand.randbytes(13 * MIB)
    sink = store.create(f"{bucket}/a.eval")
    for start in range(0, len(content), MIB):
        sink.commit(content[start : start + MIB], b"directory")
    before = proxy.uploaded
    sink.close()

    assert store.read(f"{bucket}/a.eval") == content + b"directory"
    assert s3.head_object(Bucket=bucket, Key="a.eval")["ETag"].endswith('-3"')
    assert proxy.uploaded - before < 4 * MIB  # the rest of it: two parts went up before
    assert s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []


@pytest.mark.parametrize(("commits", "size"), [(300, 3000), (60, 100_000)])
def test_what_is_uploaded_stays_under_the_bound_however_often_it_flushes(
    store: S3Store, proxy: FaultProxy, bucket: str, commits: int, size: int
) -> None:
    # given a log whose directory grows by a record with each commit
    directory = bytearray()
    sink = store.create(f"{bucket}/a.eval")
    for number in range(commits):
        directory += f"record {number:050}".encode()
        sink.commit(bytes(size), directory + b"end of the directory")
    sink.close()

    final = store.stat(f"{bucket}/a.eval").size
    assert final == commits * size + len(directory) + 20
    assert proxy.uploaded < 2.2 * final


def test_a_log_without_a_commit_is_empty(store: S3Store, s3: Any, bucket: str) -> None:
    sink = store.create(f"{bucket}/a.eval")
    sink.close()

    assert store.stat(f"{bucket}/a.eval").size == 0 and store.read(f"{bucket}/a.eval") == b""
    assert keys(s3, bucket) == ["a.eval"]


def test_a_commit_that_failed_is_tried_again_without_a_trace(store: S3Store, proxy: FaultProxy, bucket: str) -> None:
    name = f"{bucket}/a.eval"
    sink = store.create(name)
    sink.commit(b"one", b"d")
    proxy.fail(500, times=None, match=r"^PUT .*parts")
    with pytest.raises(OSError, match="the object store failed"):
        sink.commit(b"two", b"d2")
    assert store.read(name) == b"oned"
    proxy.clear()
    # what came to pass though its reply was lost is replaced by what is committed in its place
    proxy.lose_reply(times=None, match=r"^PUT .*parts")
    with pytest.raises(OSError):
        sink.commit(b"two", b"d2")
    proxy.clear()

    sink.commit(b"three", b"d3")

    assert store.read(name) == b"onethreed3"
    sink.close()
    assert store.read(name) == b"onethreed3"


def test_a_sink_whose_commit_failed_leaves_the_segments(store: S3Store, proxy: FaultProxy, bucket: str) -> None:
    name = f"{bucket}/a.eval"
    sink = store.create(name)
    sink.commit(b"one", b"d")
    proxy.fail(500, times=None, match=r"^PUT .*parts")
    with pytest.raises(OSError):
        sink.commit(b"two", b"d2")
    proxy.clear()

    sink.close()

    assert store.read(name) == b"oned" and store.stat(name).size == 4


@pytest.mark.parametrize("operation", ["partNumber=3", r"^POST .*uploadId"])
def test_a_log_that_breaks_off_in_its_last_upload_is_read_from_its_segments(
    proxy: FaultProxy, s3: Any, bucket: str, operation: str
) -> None:
    # given a run that dies while it makes one object of its log
    store, name = S3Store(part=5 * MIB), f"{bucket}/a.eval"
    content = random.Random(2).randbytes(12 * MIB)
    sink = store.create(name)
    for start in range(0, len(content), 4 * MIB):
        sink.commit(content[start : start + 4 * MIB], b"directory")
    proxy.fail(500, times=None, match=operation)
    with pytest.raises(OSError):
        sink.close()
    sink.abandon()
    proxy.clear()
    # then another process sees all of it
    other = S3Store()
    assert other.stat(name).size == len(content) + 9
    assert other.read(name) == content + b"directory"
    # and deleting it leaves nothing, what was uploaded in vain included
    other.delete(name)
    assert keys(s3, bucket) == [] and s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []


def test_closing_can_be_tried_again(proxy: FaultProxy, bucket: str) -> None:
    store, name = S3Store(part=5 * MIB), f"{bucket}/a.eval"
    sink = store.create(name)
    sink.commit(bytes(6 * MIB), b"directory")
    proxy.fail(500, times=None, match=r"^POST .*uploadId")
    with pytest.raises(OSError):
        sink.close()
    proxy.clear()

    sink.close()

    assert store.read(name) == bytes(6 * MIB) + b"directory"


@pytest.mark.parametrize("size", [6 * MIB, 1000])
def test_a_reply_that_is_lost_at_the_end_is_no_conflict(proxy: FaultProxy, bucket: str, size: int) -> None:
    store, name = S3Store(part=5 * MIB), f"{bucket}/a.eval"
    proxy.lose_reply(match=r"^PUT /[^/]*/a\.eval$")  # the name is taken by ourselves
    sink = store.create(name)
    sink.commit(bytes(size), b"directory")
    proxy.lose_reply(match=r"^(POST .*uploadId|PUT /[^/]*/a\.eval$)")

    sink.close()

    assert store.stat(name).size == size + 9


def test_parts_that_somebody_removed_are_made_anew_from_the_segments(proxy: FaultProxy, s3: Any, bucket: str) -> None:
    # A lifecycle rule that aborts uploads after some days meets a run that is longer.
    store, name = S3Store(part=5 * MIB), f"{bucket}/a.eval"
    content = random.Random(3).randbytes(11 * MIB)
    sink = store.create(name)
    sink.commit(content, b"directory")
    [upload] = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    proxy.fail(404, "NoSuchUpload", times=None, match=upload["UploadId"])

    sink.close()

    assert store.read(name) == content + b"directory"


def test_segments_of_a_log_that_was_deleted_by_hand_are_not_those_of_the_next(
    store: S3Store, s3: Any, bucket: str
) -> None:
    name = f"{bucket}/a.eval"
    sink = store.create(name)
    sink.commit(b"old", b"")
    sink.abandon()
    for key in ("a.eval", "a.eval.lease"):
        s3.delete_object(Bucket=bucket, Key=key)

    sink = store.create(name)
    sink.commit(b"new", b"")

    assert store.read(name) == b"new"
    sink.close()


def test_a_log_that_was_replaced_under_its_writer_is_not_overwritten(store: S3Store, s3: Any, bucket: str) -> None:
    sink = store.create(f"{bucket}/a.eval")
    sink.commit(b"mine", b"")
    s3.put_object(Bucket=bucket, Key="a.eval", Body=b"somebody else's")

    with pytest.raises(FileExistsError):
        sink.close()

    sink.abandon()
    assert "a.eval.parts/000001-4-0" in keys(s3, bucket)  # nothing is lost


def test_a_log_that_its_own_process_writes_anew_is_whole_when_the_sink_closes(store: S3Store, bucket: str) -> None:
    # The end of a `.json` log.
    name = f"{bucket}/a.json"
    sink = store.create(name)
    sink.commit(b"one", b"]")
    store.replace(name, [b"all of it"])

    sink.close()

    assert store.read(name) == b"all of it" and not store.live(name)


def test_a_name_is_not_kept_when_the_store_fails_after_it_was_taken(
    store: S3Store, proxy: FaultProxy, s3: Any, bucket: str
) -> None:
    proxy.fail(403, "AccessDenied", match=r"^PUT .*lease")
    with pytest.raises(PermissionError):
        store.create(f"{bucket}/a.eval")

    assert keys(s3, bucket) == []


def test_a_writer_whose_log_was_taken_over_writes_no_more(store: S3Store, s3: Any, bucket: str) -> None:
    # given a process that was stopped for so long that another took its log
    name = f"{bucket}/a.eval"
    sink: Any = store.create(name)
    other = S3Store(dead=-1.0).hold(name)
    sink._lease.renew()

    with pytest.raises(LogBusyError):
        sink.commit(b"late", b"")

    sink.abandon()
    other.close()


# How segments are put together


class _Objects:
    """Objects in memory, for `Segments`."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}

    def call(self, operation: str, place: tuple[str, str], **arguments: Any) -> dict[str, Any]:
        start, end = map(int, arguments["Range"].removeprefix("bytes=").split("-"))
        return {"Body": self.data[place[1]][start : end + 1]}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=8), st.binary(max_size=12), st.booleans()), max_size=8), st.data())
def test_segments_read_like_the_file_that_they_are(commits: list[tuple[bytes, bytes, bool]], data: Any) -> None:
    objects, rows = _Objects(), []
    content = directory = b""
    for number, (segment, new, whole) in enumerate(commits, 1):
        kept = 0 if whole else _common(directory, new)
        key = "a.eval.parts/" + Segment.name(number, len(segment), kept)
        objects.data[key] = segment + new[kept:]
        rows.append(
            {
                "Key": key,
                "Size": len(objects.data[key]),
                "LastModified": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
            }
        )
        content, directory = content + segment, new
    expected = content + directory
    start = data.draw(st.integers(0, len(expected)))
    end = data.draw(st.integers(start, len(expected) + 2))

    seen = Segments(objects, "b", rows)  # type: ignore[arg-type]  # what it calls is all that is there

    assert seen.size == len(expected) and seen.read() == expected and seen.read(start, end) == expected[start:end]
    assert sum(length for _, _, length in _directory(seen.segments)) == len(directory)


@given(st.binary(max_size=30), st.binary(max_size=30), st.binary(max_size=30))
def test_the_common_beginning(both: bytes, first: bytes, second: bytes) -> None:
    found = _common(both + first, both + second)

    assert found >= len(both)
    assert (both + first)[:found] == (both + second)[:found]
    assert found == min(len(both + first), len(both + second)) or (both + first)[found] != (both + second)[found]


def test_what_is_a_segment() -> None:
    assert is_part("x/a.eval.parts/000001-3-0") == "x/a.eval"
    for key in ("x/a.eval", "x/a.parts/b.eval", "a.parts/000001-3", "parts/000001-3-0", "x/parts/000001-3-0"):
        assert is_part(key) is None, key


def test_the_unseen_upload_of_a_killed_run_goes_when_another_run_begins(
    proxy: FaultProxy, s3: Any, bucket: str
) -> None:
    def uploads() -> int:
        return len(s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []))

    # given a run that has uploaded a part, and one elsewhere
    sinks = [S3Store(part=5 * MIB).create(f"{bucket}/{folder}/a.eval") for folder in ("logs", "others")]
    for sink in sinks:
        sink.commit(bytes(6 * MIB), b"directory")
    assert uploads() == 2
    # when another begins in the folder while it lives, nothing is touched
    S3Store().check(f"{bucket}/logs")
    assert uploads() == 2
    # and when it is dead, its upload goes; dry runs change nothing
    S3Store(dead=-1).check(f"{bucket}/logs", dry=True)
    assert uploads() == 2
    S3Store(dead=-1).check(f"{bucket}/logs")
    assert uploads() == 1
    sinks[0].abandon()
    sinks[1].close()
    assert S3Store().stat(f"{bucket}/others/a.eval").size == 6 * MIB + 9


def test_a_log_that_somebody_writes_as_a_whole_has_a_day_for_it(store: S3Store, s3: Any, bucket: str) -> None:
    # given an upload without a lease, as of an edit, that was begun an hour ago, and one of two days ago
    for key in ("logs/a.eval", "logs/b.eval"):
        s3.create_multipart_upload(Bucket=bucket, Key=key)
    now = datetime.datetime.now(datetime.UTC)
    call = store._client.call

    def dated(operation: str, place: Any, **arguments: Any) -> Any:
        reply = call(operation, place, **arguments)
        for upload in reply.get("Uploads", ()):
            upload["Initiated"] = now - datetime.timedelta(hours=1 if upload["Key"].endswith("a.eval") else 48)
        return reply

    store._client.call = dated  # type: ignore[method-assign]
    store.check(f"{bucket}/logs")
    assert [one["Key"] for one in s3.list_multipart_uploads(Bucket=bucket)["Uploads"]] == ["logs/a.eval"]

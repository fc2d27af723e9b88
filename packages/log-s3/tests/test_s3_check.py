"""What a store says before a run begins."""

from __future__ import annotations

from proctor_log_s3._store import S3Store
from proctor_testkit import FaultProxy


def test_a_folder_can_be_written_though_the_reply_of_the_first_probe_was_lost(
    store: S3Store, proxy: FaultProxy, bucket: str
) -> None:
    # given a store whose first reply is lost, so that the SDK asks again and finds its own object
    proxy.lose_reply(match="^PUT")

    store.check(f"{bucket}/logs")

    # then that is no reason to write nothing there, and nothing is left
    assert list(store.list(f"{bucket}/logs")) == []
    assert [one.method for one in proxy.requests][:2] == ["PUT", "PUT"]

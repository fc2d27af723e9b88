"""Commits that die on their way, or find no space."""

from __future__ import annotations

import errno
from typing import NamedTuple

import pytest

from proctor.contracts import LogSink, LogStore, UsageError
from proctor.log import LogWriter, MemoryStore, read_eval_log, recover_eval_log
from proctor.schema import EvalConfig, EvalDataset, EvalPlan, EvalSample, EvalSpec, EvalStats
from proctor_testkit._store_checks import Failing, StoreChecks, Torn
from proctor_testkit._suite import check

__all__ = ["CrashChecks"]


class _Commit(NamedTuple):
    segment: bytes
    directory: bytes


class CrashChecks(StoreChecks):
    """Commits that die on their way, or find no space."""

    @check("store.torn", needs="torn")
    def test_a_log_is_recovered_from_a_commit_that_died_after_any_byte(
        self, store: LogStore, name: str, torn: Torn
    ) -> None:
        commits = _commits()
        for place in range(1, len(commits)):
            before, (segment, directory) = commits[:place], commits[place]
            old, new = _samples(commits[:place]), _samples(commits[: place + 1])
            acknowledged = b"".join(one.segment for one in before)
            for size in range(len(segment) + len(directory)):
                one = f"{name}-{place}-{size}"
                sink = store.create(one)
                for commit in before:
                    sink.commit(*commit)
                torn(store, one, sink, segment, directory, size)

                found = store.read(one)

                assert found[: len(acknowledged)] == acknowledged, f"commit {place} cut at byte {size}"
                samples = _read(found)
                assert samples == new[: len(samples)], f"commit {place} cut at byte {size}"
                assert len(samples) >= len(old), f"commit {place} cut at byte {size}"
                store.delete(one)

    @check("store.no_space", needs="failing")
    def test_a_commit_without_space_changes_nothing_and_can_be_tried_again(
        self, store: LogStore, name: str, failing: Failing
    ) -> None:
        sink = store.create(name)
        sink.commit(b"one", b"directory")

        with failing(store):
            for _ in range(2):
                with pytest.raises(OSError) as caught:
                    sink.commit(b"two" * 10_000, b"end" * 10_000)
                assert caught.value.errno in (errno.ENOSPC, errno.EDQUOT)
        assert store.read(name)[:3] == b"one"
        sink.commit(b"", b"directory")
        assert store.read(name) == b"onedirectory"
        sink.commit(b"two", b"end")
        sink.close()

        assert store.read(name) == b"onetwoend"


class _Spy(MemoryStore):
    """Keeps the commits."""

    def __init__(self) -> None:
        self.commits: list[_Commit] = []

    def create(self, name: str) -> LogSink:
        sink = super().create(name)
        commit = sink.commit

        def spy(segment: bytes, directory: bytes | bytearray) -> None:
            self.commits.append(_Commit(bytes(segment), bytes(directory)))
            commit(segment, directory)

        sink.commit = spy  # type: ignore[method-assign]  # a spy on a real sink
        return sink


_FOLDER = "proctor-testkit-crash-checks"


def _commits() -> list[_Commit]:
    """The commits of a run of two samples."""
    store = _Spy()
    times = "2026-01-01T00:00:00+00:00"
    dataset = EvalDataset(sample_ids=[1, 2])
    spec = EvalSpec(created=times, task="torn", dataset=dataset, model="none/none", config=EvalConfig())
    writer = LogWriter.open(_FOLDER, spec, EvalPlan(), store=store)
    for number in (1, 2):
        writer.write(EvalSample(id=number, epoch=1, input="q", target="a"))
    writer.finish("success", None, EvalStats(started_at=times, completed_at=times))
    for name, _ in list(store.list(_FOLDER)):
        store.delete(name)
    return store.commits


def _samples(commits: list[_Commit]) -> list[int | str]:
    return _read(b"".join(commit.segment for commit in commits) + commits[-1].directory)


def _read(content: bytes) -> list[int | str]:
    """The samples of a log, read as it is and once more after its recovery."""
    store, name = MemoryStore(), f"{_FOLDER}/torn.eval"
    location, recovered = f"memory://{name}", f"{_FOLDER}/recovered.eval"
    store.replace(name, [content])
    samples = [sample.id for sample in read_eval_log(location).samples or ()]
    try:
        made = recover_eval_log(location, f"memory://{recovered}", overwrite=True)
    except UsageError:  # it is whole
        return samples
    assert [sample.id for sample in read_eval_log(made).samples or ()] == samples
    return samples

from __future__ import annotations

import threading
from collections.abc import Iterable

import pytest

from proctor.contracts import LogSink, LogStore
from proctor_testkit._suite import Suite, check

NAME = "folder/2026-01-01T00-00-00-00-00_a-task_0000.eval"
EVERY_BYTE = bytes(range(256)) * 3


class LogStoreSuite(Suite):
    """What every log store must do. A subclass gives an empty store in its ``store`` fixture.

    Example::

        class TestAcmeStore(LogStoreSuite):
            @pytest.fixture
            def store(self, tmp_path):
                return AcmeStore(str(tmp_path))
    """

    @pytest.fixture
    def store(self) -> LogStore:
        """An empty store."""
        raise pytest.UsageError(f"{type(self).__name__} needs a fixture `store` that returns an empty log store")

    @pytest.fixture
    def name(self) -> str:
        """The name of a log that is not there yet, as the store takes it."""
        return NAME

    def written(self, store: LogStore, name: str, commits: Iterable[tuple[bytes, bytes]]) -> None:
        """A log made of ``commits``, and closed."""
        sink = store.create(name)
        for segment, directory in commits:
            sink.commit(segment, directory)
        sink.close()

    @check("store.append")
    def test_segments_follow_each_other_and_the_last_directory_ends_the_log(self, store: LogStore, name: str) -> None:
        self.written(store, name, [(EVERY_BYTE, b"directory 1, which is long"), (b"second", b"directory 2")])

        assert store.read(name) == EVERY_BYTE + b"second" + b"directory 2"

    @check("store.durable")
    def test_a_commit_can_be_read_at_once(self, store: LogStore, name: str) -> None:
        sink = store.create(name)

        sink.commit(b"one", b"directory")

        assert store.read(name) == b"onedirectory"
        sink.close()

    @check("store.empty_commit")
    def test_a_commit_may_change_the_directory_only(self, store: LogStore, name: str) -> None:
        self.written(store, name, [(b"one", b"a longer directory"), (b"", b"end")])

        assert store.read(name) == b"oneend"

    @check("store.create")
    def test_a_name_is_taken_once(self, store: LogStore, name: str) -> None:
        self.written(store, name, [(b"first", b"")])

        with pytest.raises(FileExistsError):
            store.create(name)

        assert store.read(name) == b"first"

    @check("store.create_race")
    def test_of_many_threads_one_gets_the_name(self, store: LogStore, name: str) -> None:
        sinks: list[LogSink] = []
        refused: list[FileExistsError] = []
        together = threading.Barrier(8)

        def create() -> None:
            together.wait()
            try:
                sinks.append(store.create(name))
            except FileExistsError as error:
                refused.append(error)

        threads = [threading.Thread(target=create) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert (len(sinks), len(refused)) == (1, 7)
        sinks[0].close()

    @check("store.close")
    def test_a_sink_can_be_closed_twice(self, store: LogStore, name: str) -> None:
        sink = store.create(name)
        sink.commit(b"one", b"")

        sink.close()
        sink.close()

        assert store.read(name) == b"one"

    @check("store.live")
    def test_a_closed_log_is_not_live(self, store: LogStore, name: str) -> None:
        self.written(store, name, [(b"one", b"")])

        assert not store.live(name)

    @check("store.read")
    @pytest.mark.parametrize(("start", "end"), [(0, None), (0, 3), (2, 5), (5, None), (3, 3), (4, 1000), (9, 12)])
    def test_ranges_are_half_open_and_cut_at_the_end(
        self, store: LogStore, name: str, start: int, end: int | None
    ) -> None:
        content = b"0123456789"
        self.written(store, name, [(content, b"")])

        assert store.read(name, start, end) == content[start:end]

    @check("store.stat")
    def test_size_and_etag_follow_the_content(self, store: LogStore, name: str) -> None:
        sink = store.create(name)
        sink.commit(b"one", b"dir")
        before = store.stat(name)

        sink.commit(b"two, longer", b"dir")
        sink.close()
        after = store.stat(name)

        assert (before.size, after.size) == (6, 17)
        assert before.etag != after.etag
        assert after.mtime >= before.mtime > 0

    @check("store.missing")
    def test_a_missing_log_is_said_to_be_missing(self, store: LogStore, name: str) -> None:
        for call in (store.read, store.stat, store.delete):
            with pytest.raises(FileNotFoundError):
                call(name)

    @check("store.list")
    def test_the_files_below_a_folder_are_listed(self, store: LogStore, name: str) -> None:
        folder = name.rpartition("/")[0]
        names = {f"{folder}/a.eval", f"{folder}/b.eval", f"{folder}/deeper/c.eval"}
        for one in names:
            self.written(store, one, [(b"x" * len(one), b"")])

        found = dict(store.list(folder))
        flat = {one for one, _ in store.list(folder, recursive=False)}

        assert set(found) == names
        assert {one: stat.size for one, stat in found.items()} == {one: len(one) for one in names}
        assert flat == {f"{folder}/a.eval", f"{folder}/b.eval"}

    @check("store.list_nothing")
    def test_a_folder_that_is_not_there_lists_nothing(self, store: LogStore, name: str) -> None:
        assert list(store.list(f"{name.rpartition('/')[0]}/nowhere")) == []

    @check("store.replace")
    def test_a_log_is_replaced_as_a_whole(self, store: LogStore, name: str) -> None:
        first = store.replace(name, [b"a long first ", b"content"])

        second = store.replace(name, [b"short"], if_match=first.etag)

        assert store.read(name) == b"short"
        assert second.etag == store.stat(name).etag != first.etag

    @check("store.replace_conflict")
    def test_an_edit_on_an_old_state_is_refused(self, store: LogStore, name: str) -> None:
        old = store.replace(name, [b"first"])
        store.replace(name, [b"somebody else's"], if_match=old.etag)

        with pytest.raises(FileExistsError):
            store.replace(name, [b"mine"], if_match=old.etag)

        assert store.read(name) == b"somebody else's"

    @check("store.replace_fails")
    def test_a_replacement_that_breaks_off_leaves_the_old_content(self, store: LogStore, name: str) -> None:
        store.replace(name, [b"old"])

        def breaks_off() -> Iterable[bytes]:
            yield b"half"
            raise RuntimeError("the source of the new content broke")

        with pytest.raises(RuntimeError):
            store.replace(name, breaks_off())

        assert store.read(name) == b"old"
        assert [one for one, _ in store.list(name.rpartition("/")[0])] == [name]

    @check("store.delete")
    def test_a_deleted_log_is_gone_and_its_name_is_free(self, store: LogStore, name: str) -> None:
        self.written(store, name, [(b"one", b"")])

        store.delete(name)

        with pytest.raises(FileNotFoundError):
            store.read(name)
        self.written(store, name, [(b"two", b"")])
        assert store.read(name) == b"two"

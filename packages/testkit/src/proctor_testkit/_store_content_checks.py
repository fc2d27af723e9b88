"""One log: made, grown, read, replaced, deleted."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress

import pytest

from proctor.contracts import LogBusyError, LogSink, LogStore
from proctor_testkit._store_checks import StoreChecks
from proctor_testkit._suite import check

__all__ = ["ContentChecks"]

EVERY_BYTE = bytes(range(256)) * 3


class ContentChecks(StoreChecks):
    """One log: made, grown, read, replaced, deleted."""

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

        assert len(sinks) == 1, (
            f"of 8 threads that create one log {len(sinks)} got a sink: exactly one may, or two runs write one log; "
            "the others get FileExistsError"
        )
        assert len(refused) == 7, f"of 8 threads that create one log 7 get FileExistsError, not {len(refused)}"
        sinks[0].close()

    @check("store.close")
    def test_a_sink_can_be_closed_twice(self, store: LogStore, name: str) -> None:
        sink = store.create(name)
        sink.commit(b"one", b"")

        sink.close()
        sink.close()

        assert store.read(name) == b"one"

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

    @check("store.replace")
    def test_a_log_is_replaced_as_a_whole(self, store: LogStore, name: str) -> None:
        first = store.replace(name, [b"a long first ", b"content"])

        seen: list[bytes] = []
        reader = threading.Thread(target=lambda: seen.append(store.read(name)), daemon=True)

        def new_content() -> Iterable[bytes]:
            yield b"sho"
            reader.start()
            reader.join(1)  # a store may let it wait for the end
            yield b"rt"

        second = store.replace(name, new_content(), if_match=first.etag)
        reader.join(60)

        assert seen in ([b"a long first content"], [b"short"]), (
            f"who reads while a log is replaced gets the old content or the new one, never a mixture, but got {seen}"
        )
        assert store.read(name) == b"short", "the new content takes the place of the old one as a whole"
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

    @check("store.delete_live")
    def test_a_log_that_is_deleted_while_it_is_written_does_not_come_back(self, store: LogStore, name: str) -> None:
        sink = store.create(name)
        sink.commit(b"one", b"directory")
        try:
            store.delete(name)
        except (LogBusyError, PermissionError):  # a store may refuse it, then nothing has happened
            sink.commit(b"two", b"end")
            sink.close()
            assert store.read(name) == b"onetwoend"
            return

        with suppress(OSError):
            sink.commit(b"two", b"end")
        with suppress(OSError):
            sink.close()

        self.written(store, name, [(b"a new log", b"")])
        assert store.read(name) == b"a new log"

    @check("store.etag")
    def test_no_two_contents_share_an_etag_however_fast_they_follow_each_other(
        self, store: LogStore, name: str
    ) -> None:
        etags: list[str] = []
        sink = store.create(name)
        for number in range(20):  # of one size, in one tick of the clock
            sink.commit(b"", b"directory %02d" % number)
            etags.append(store.stat(name).etag)
        sink.close()
        etags += [store.replace(name, [b"replaced %03d" % number]).etag for number in range(20)]

        assert len(set(etags)) == 40, "two contents share an etag: an edit of the older one would not be refused"

    @check("store.replace_race")
    def test_of_many_edits_of_one_state_one_wins(self, store: LogStore, name: str) -> None:
        for lap in range(5):
            first = store.replace(name, [b"first"])
            won: list[bytes] = []
            refused: list[Exception] = []
            together = threading.Barrier(8)

            def edit(mine: bytes, state: str, won: list[bytes], refused: list[Exception]) -> None:
                together.wait()  # noqa: B023 - joined before the next lap
                try:
                    store.replace(name, [mine], if_match=state)
                    won.append(mine)
                except (FileExistsError, LogBusyError) as error:
                    refused.append(error)

            threads = [
                threading.Thread(target=edit, args=(b"editor %d" % number, first.etag, won, refused))
                for number in range(8)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

            assert len(won) == 1, (
                f"of 8 edits of one state {len(won)} succeeded (lap {lap}): one may, or edits are lost without a word"
            )
            assert len(refused) == 7, f"7 of the 8 edits get FileExistsError or LogBusyError, not {len(refused)}"
            assert store.read(name) == won[0], "the content is that of the edit that succeeded"

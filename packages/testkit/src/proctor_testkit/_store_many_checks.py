"""Many logs, large ones, oddly named ones, and ones that are read while they grow."""

from __future__ import annotations

import threading
from typing import ClassVar

import pytest

from proctor.contracts import LogStore, UsageError
from proctor_testkit._store_checks import StoreChecks
from proctor_testkit._suite import check

__all__ = ["ManyChecks"]

_NAMES = [
    "plain.eval",
    "with spaces  and a tab\t.eval",
    "Prüfung-测试-🙂.eval",
    "100%.eval",
    "%41%2F..%20.eval",
    "a+b&c=d;e?f#g.eval",
    "[x]*{y}~'\"`$(z).eval",
    ".hidden.eval",
    "-leading.eval",
    "e\u0301 and \u00e9.eval",
    "ü" * 97 + ".eval",  # 199 bytes
]


class ManyChecks(StoreChecks):
    """Many logs, large ones, oddly named ones, and ones that are read while they grow."""

    many: ClassVar[int] = 10_000
    """How many logs are listed in the check ``store.many``."""

    def fill(self, store: LogStore, names: list[str]) -> None:
        """Make a log of one byte under each name; a subclass that has a faster way may use it."""
        for name in names:
            store.replace(name, [b"x"])

    @check("store.list")
    def test_the_files_below_a_folder_are_listed(self, store: LogStore, folder: str) -> None:
        names = {f"{folder}/a.eval", f"{folder}/b.eval", f"{folder}/deeper/c.eval"}
        for one in names:
            self.written(store, one, [(b"x" * len(one), b"")])

        found = dict(store.list(folder))
        flat = {one for one, _ in store.list(folder, recursive=False)}

        assert set(found) == names
        assert {one: stat.size for one, stat in found.items()} == {one: len(one) for one in names}
        assert flat == {f"{folder}/a.eval", f"{folder}/b.eval"}

    @check("store.list_nothing")
    def test_a_folder_that_is_not_there_lists_nothing(self, store: LogStore, folder: str) -> None:
        assert list(store.list(f"{folder}/nowhere")) == []

    @check("store.list_siblings")
    def test_a_folder_whose_name_begins_alike_is_not_listed(self, store: LogStore, folder: str) -> None:
        for one in (f"{folder}/runs/a.eval", f"{folder}/runs-old/b.eval", f"{folder}/runs.eval"):
            self.written(store, one, [(b"x", b"")])

        assert [one for one, _ in store.list(f"{folder}/runs")] == [f"{folder}/runs/a.eval"]
        assert [one for one, _ in store.list(f"{folder}/runs/")] == [f"{folder}/runs/a.eval"]

    @check("store.list_live")
    def test_a_log_that_is_written_is_one_file_of_its_size(self, store: LogStore, name: str, folder: str) -> None:
        sink = store.create(name)
        sink.commit(b"one", b"directory")
        sink.commit(b"two", b"end")

        assert [(one, stat.size) for one, stat in store.list(folder)] == [(name, 9)]
        sink.close()
        assert [(one, stat.size) for one, stat in store.list(folder)] == [(name, 9)]

    @check("store.check")
    def test_a_folder_that_can_be_written_passes_and_stays_empty(self, store: LogStore, folder: str) -> None:
        store.check(folder, dry=True)
        store.check(folder)

        assert list(store.list(folder)) == []

    @check("store.names")
    @pytest.mark.parametrize("last", _NAMES, ids=lambda name: f"{len(name.encode())}-bytes")
    def test_any_text_is_a_name(self, store: LogStore, folder: str, last: str) -> None:
        name = f"{folder}/{last}"

        self.written(store, name, [(last.encode(), b"")])

        assert store.read(name) == last.encode()
        assert [one for one, _ in store.list(folder)] == [name]
        store.replace(name, [b"new"], if_match=store.stat(name).etag)
        store.delete(name)
        assert list(store.list(folder)) == []

    @check("store.no_name")
    def test_a_log_without_a_name_is_refused(self, store: LogStore, folder: str) -> None:
        for name in (f"{folder}/", ""):
            with pytest.raises((OSError, ValueError, UsageError)):
                store.create(name)

        assert list(store.list(folder)) == []

    @check("store.reading_while_written")
    def test_what_was_acknowledged_is_there_for_who_reads_while_the_log_grows(self, store: LogStore, name: str) -> None:
        segments = [bytes([number]) * (1 + 997 * number % 5000) for number in range(100)]
        acknowledged = [0]
        faults: list[BaseException] = []
        sink = store.create(name)

        def write() -> None:
            try:
                for number, segment in enumerate(segments):
                    sink.commit(segment, b"directory" * (number % 7))
                    acknowledged[0] = number + 1
            except BaseException as error:
                faults.append(error)
            finally:
                sink.close()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            going = True
            while going:
                going = writer.is_alive()
                there = b"".join(segments[: acknowledged[0]])
                assert store.read(name)[: len(there)] == there
                assert store.read(name, 0, len(there)) == there
                assert store.stat(name).size >= len(there)
        finally:
            writer.join()
        assert faults == []
        assert acknowledged == [len(segments)]

    @check("store.large")
    @pytest.mark.slow
    def test_a_segment_may_be_large(self, store: LogStore, name: str) -> None:
        block = bytes(range(256)) * 4096  # 1 MiB
        sink = store.create(name)
        sink.commit(b"head", b"")
        sink.commit(block * 64, b"directory")
        sink.commit(b"tail", b"end")
        sink.close()

        assert store.stat(name).size == (64 << 20) + 11
        assert store.read(name, 0, 8) == b"head" + block[:4]
        middle = 4 + (32 << 20)
        assert store.read(name, middle, middle + len(block)) == block
        assert store.read(name, 4 + (64 << 20)) == b"tailend"

    @check("store.many")
    @pytest.mark.slow
    def test_many_logs_are_all_listed_once(self, store: LogStore, folder: str) -> None:
        names = [f"{folder}/{number % 10}/{number:05}.eval" for number in range(self.many)]
        self.fill(store, names)

        found = [(one, stat.size) for one, stat in store.list(folder)]
        flat = [one for one, _ in store.list(f"{folder}/3", recursive=False)]

        assert len(found) == len(names)
        assert sorted(found) == [(one, 1) for one in sorted(names)]
        assert sorted(flat) == [one for one in sorted(names) if f"{folder}/3/" in one]

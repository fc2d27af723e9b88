"""Who has a log: writers, resumes and edits, in this process and others."""

from __future__ import annotations

import threading

import pytest

from proctor.contracts import LogBusyError, LogLease, LogStore
from proctor_testkit._store_checks import Lapse, Opener, StoreChecks
from proctor_testkit._store_processes import elsewhere
from proctor_testkit._suite import check

__all__ = ["LeaseChecks"]


class LeaseChecks(StoreChecks):
    """Who has a log."""

    @check("store.live")
    def test_a_closed_log_is_not_live(self, store: LogStore, name: str) -> None:
        self.written(store, name, [(b"one", b"")])

        assert not store.live(name)

    @check("store.live_writer", needs="leases")
    def test_a_log_is_live_while_it_is_written(self, store: LogStore, name: str) -> None:
        sink = store.create(name)
        sink.commit(b"one", b"")

        assert store.live(name)
        with pytest.raises(LogBusyError):
            store.hold(name)

        sink.close()
        assert not store.live(name)

    @check("store.hold")
    def test_a_finished_log_can_be_held_again_and_again(self, store: LogStore, name: str) -> None:
        self.written(store, name, [(b"one", b"")])

        for _ in range(2):
            with store.hold(name) as lease:
                pass
            lease.close()  # harmless
        assert not store.live(name)

    @check("store.hold_missing")
    def test_a_log_that_is_not_there_cannot_be_held(self, store: LogStore, name: str) -> None:
        with pytest.raises(FileNotFoundError):
            store.hold(name)

    @check("store.hold_race", needs="leases")
    def test_of_many_holders_one_succeeds(self, store: LogStore, name: str) -> None:
        self.written(store, name, [(b"one", b"")])
        held: list[LogLease] = []
        refused: list[LogBusyError] = []
        together = threading.Barrier(8)

        def hold() -> None:
            together.wait()
            try:
                held.append(store.hold(name))
            except LogBusyError as error:
                refused.append(error)

        threads = [threading.Thread(target=hold) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert (len(held), len(refused)) == (1, 7)
        assert store.live(name)
        held[0].close()
        assert not store.live(name)

    @check("store.hold_replace", needs="leases")
    def test_a_holder_may_replace_the_log_and_has_it_still(self, store: LogStore, name: str) -> None:
        first = store.replace(name, [b"first"])

        with store.hold(name):
            store.replace(name, [b"second"], if_match=first.etag)
            with pytest.raises(LogBusyError):
                store.hold(name)

        assert store.read(name) == b"second"
        store.hold(name).close()

    @check("store.create_processes", needs="processes")
    @pytest.mark.slow
    def test_of_many_processes_one_gets_the_name(self, store: LogStore, name: str, opener: Opener) -> None:
        with elsewhere(opener, name, "create", 2) as processes:
            assert sorted(process.answer for process in processes) == ["done", "refused"]

            with pytest.raises(FileExistsError):
                store.create(name)

    @check("store.hold_processes", needs="processes leases")
    @pytest.mark.slow
    def test_a_log_that_another_process_holds_is_refused(self, store: LogStore, name: str, opener: Opener) -> None:
        self.written(store, name, [(b"one", b"")])

        with elsewhere(opener, name, "hold", 1) as [process]:
            assert process.answer == "done"
            assert store.live(name)
            with pytest.raises(LogBusyError):
                store.hold(name)
        store.hold(name).close()

    @check("store.lease_dies", needs="processes dying_leases")
    @pytest.mark.slow
    def test_a_writer_that_dies_gives_its_log_back(
        self, store: LogStore, name: str, opener: Opener, lapse: Lapse
    ) -> None:
        with elsewhere(opener, name, "create", 1) as [process]:
            assert process.answer == "done"
            assert store.live(name)

            process.kill()
            lapse()

            assert not store.live(name)
            store.hold(name).close()

from __future__ import annotations

import threading

import pytest

from proctor.plugins import _slow
from proctor.plugins._slow import said_when_slow


def test_no_thread_is_left_once_the_block_is(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    class Late(threading.Timer):
        """One whose thread takes its time to end, as any does on a busy machine."""

        def run(self) -> None:
            super().run()
            threading.Event().wait(0.05)
            ended.set()

    monkeypatch.setattr(threading, "Timer", Late)
    with said_when_slow("Still there."):
        pass
    assert ended.is_set()


def test_a_word_that_waits_for_the_block_to_be_left_does_not_hold_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_slow, "PATIENCE", 0.01)
    saying, left = threading.Event(), threading.Event()
    heard: list[str] = []

    def say(text: str) -> None:
        saying.set()
        if left.wait(60):
            heard.append(text)

    before = set(threading.enumerate())
    with said_when_slow("Still there.", say):
        assert saying.wait(60)
        [timer] = set(threading.enumerate()) - before
    left.set()
    timer.join(60)
    assert heard == ["Still there."]


def test_the_block_may_be_left_on_the_thread_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_slow, "PATIENCE", 0.01)
    done = threading.Event()
    raised: list[BaseException] = []

    def say(_text: str) -> None:
        try:
            block.__exit__(None, None, None)
        except BaseException as error:
            raised.append(error)
        done.set()

    block = said_when_slow("Still there.", say)
    block.__enter__()
    assert done.wait(60)
    assert raised == []

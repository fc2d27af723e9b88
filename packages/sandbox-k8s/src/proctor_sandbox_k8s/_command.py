"""Runs one command in a container, in a worker thread: never twice, and never half unseen."""

from __future__ import annotations

import random
import secrets
import time
from dataclasses import dataclass

from proctor.contracts import ExecTimeoutError, OutputLimitExceededError, SandboxBrokenError
from proctor_sandbox_k8s._cluster import Refused, Unreachable
from proctor_sandbox_k8s._diagnosis import broken
from proctor_sandbox_k8s._output import Outcome, Output
from proctor_sandbox_k8s._pods import Pods, Watched
from proctor_sandbox_k8s._script import KILL, Command, boot, program
from proctor_sandbox_k8s._stream import ExecStream, StreamCut
from proctor_sandbox_k8s._wake import Stop, Stopped

__all__ = ["LIMIT", "Result", "Target", "run"]

LIMIT = 10 * 1024**2
"""Bytes of a stream that are taken in."""

_SHAKING = 60.0  # seconds in which a new attempt to begin may be made
_ANSWER = 20.0  # seconds that a handshake, and then the shell, may take
_LATE = 5.0  # seconds that what is on its way may take after the command's end
_HELD = 0.5  # seconds after which something in the background holds the streams
_KILLING = 20.0
_LOOK = 5.0  # seconds after which what the watch knows of the pod is looked at


@dataclass(frozen=True, slots=True)
class Target:
    """Where a command runs.

    Args:
        pods: of its driver and namespace.
        watched: the pod.
        container: in it.
    """

    pods: Pods
    watched: Watched
    container: str

    def broken(self, what: str) -> SandboxBrokenError:
        """What happened, and how the pod is."""
        return broken(self.pods, self.watched, what, self.container)


@dataclass(frozen=True, slots=True)
class Result:
    """A command that has ended."""

    outcome: Outcome
    stdout: bytes
    stderr: bytes


def run(target: Target, command: Command, stop: Stop, timeout: float | None = None, limit: int = LIMIT) -> Result:
    """Run a command to its end.

    Args:
        target: where.
        command: what.
        stop: ends it from another thread.
        timeout: seconds, from the moment that the container is ready for it.
        limit: bytes of each stream that are taken in.

    Raises:
        ExecTimeoutError: the time was over; all its processes are dead.
        OutputLimitExceededError: it wrote more than ``limit``; all its processes are dead.
        SandboxBrokenError: not the command failed.
        Stopped: ``stop`` was set; all its processes are dead.
    """
    stream, ready = _open(target, stop)
    try:
        return _Run(target, command, stop, stream, ready, limit).follow(timeout)
    finally:
        stream.close()


def _open(target: Target, stop: Stop, patience: float | None = None) -> tuple[ExecStream, str]:
    """A shell that is ready for its program. What fails before that has done nothing, and is tried again."""
    patience = _SHAKING if patience is None else patience
    until, pause = time.monotonic() + patience, 0.1
    while True:
        if why := target.watched.problem():
            raise target.broken(f"no command can be run: {why}")
        ready = secrets.token_hex(16)
        try:
            return _attempt(target, ready, stop), ready
        except (Refused, Unreachable, StreamCut) as error:
            if isinstance(error, Refused) and error.status in (401, 403, 404):
                raise target.broken(_refused(error)) from None
            if time.monotonic() + pause > until:
                raise target.broken(f"no command could be begun for {patience:g} s: {error}") from None
        stop.wait(pause * random.uniform(0.5, 1.0))
        if stop.asked:
            raise Stopped
        pause = min(pause * 2, 5.0)


def _refused(error: Refused) -> str:
    if error.status == 404:
        return f"the pod is not there: {error}"
    return f"the cluster lets this user run no commands: {error} (its role needs create and get of pods/exec)"


def _attempt(target: Target, ready: str, stop: Stop) -> ExecStream:
    words = [("command", word) for word in boot(ready)]
    query = [("container", target.container), *words, *((name, "true") for name in ("stdin", "stdout", "stderr"))]
    path = f"{target.pods.path}/{target.watched.name}/exec"
    stream = ExecStream(target.pods.cluster.open_socket(path, query, _ANSWER), stop.woken)
    try:
        _await_ready(target, stream, Output("", ready), stop)
    except BaseException:
        stream.close()
        raise
    return stream


def _await_ready(target: Target, stream: ExecStream, output: Output, stop: Stop) -> None:
    until = time.monotonic() + _ANSWER
    while True:
        if stop.asked:
            raise Stopped
        if time.monotonic() > until:
            raise StreamCut(f"the shell in the container was not there after {_ANSWER:g} s")
        for channel, data in stream.step(1.0):
            output.feed(channel, data)
        if output.ready:
            return
        if not _over(stream):
            continue
        said = str((stream.status or {}).get("message") or output.said or "the connection ended")
        if "executable file not found" in said or "no such file or directory" in said:
            raise SandboxBrokenError(
                f"the image of container {target.container} has no `sh`, which commands and files go through: {said}"
            )
        raise StreamCut(said)


def _over(stream: ExecStream) -> bool:
    return stream.closed or stream.status is not None


class _Run:
    """One command, from the moment that the shell is ready for it."""

    def __init__(
        self,
        target: Target,
        command: Command,
        stop: Stop,
        stream: ExecStream,
        ready: str,
        limit: int,
        kills: bool = True,
    ) -> None:
        token, self._mark = secrets.token_hex(16), secrets.token_hex(16)
        self._kills = kills
        self._target, self._command, self._stop, self._stream = target, command, stop, stream
        self._output = Output(token, ready, len(command.input), limit)
        self._output.feed(1, f"{ready} ready\n".encode())
        stream.send(program(command, token, self._mark) + f"{ready} go\n".encode() + command.input)

    def follow(self, timeout: float | None) -> Result:
        """See it to its end."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._step(_LOOK if end is None else min(_LOOK, end - time.monotonic())):
            if end is not None and time.monotonic() >= end and not self._output.ended:
                self._kill("its time was over")
                stdout, stderr = _text(self._output.stdout), _text(self._output.stderr)
                raise ExecTimeoutError(timeout, stdout, stderr)
        return self._result()

    def within(self, seconds: float) -> Result | None:
        """See it to its end, if that comes in time."""
        end = time.monotonic() + seconds
        while not self._step(end - time.monotonic()):
            if time.monotonic() >= end:
                return None
        return self._result()

    def _step(self, seconds: float) -> bool:
        """Wait for something to happen; whether all is here."""
        output, stream = self._output, self._stream
        if self._stop.asked:
            self._stop.taken()
            self._kill("nobody waits for it")
            raise Stopped
        try:
            came = stream.step(max(0.0, seconds))
        except StreamCut as error:
            raise self._cut(str(error)) from None
        for channel, data in came:
            output.feed(channel, data)
        if number := output.too_long:
            self._kill("it wrote too much")
            raise _too_long(output.stdout if number == 1 else output.stderr)
        if output.ended:
            return output.closed or self._settled()
        if stream.closed and not came:
            said = (stream.status or {}).get("message")
            raise self._cut(f"the server ended the stream{f': {said}' if said else ''}")
        if not came and (why := self._target.watched.problem()):
            raise self._target.broken(f"a command was cut: {why}")
        return False

    def _settled(self) -> bool:
        """Let what is on its way come; whether all is here then, or never will be."""
        output, stream = self._output, self._stream
        until = time.monotonic() + (_LATE if output.counted else _HELD)
        while not output.closed and not stream.closed and time.monotonic() < until:
            counted = output.counted
            try:
                for channel, data in stream.step(until - time.monotonic()):
                    output.feed(channel, data)
            except StreamCut:
                break
            if output.counted and not counted:
                until = time.monotonic() + _LATE
        if (missing := output.problem()) is not None:
            raise self._cut(missing)
        return True

    def _result(self) -> Result:
        outcome = self._output.outcome()
        if outcome.cut_input:
            raise self._target.broken("a command was given less input than there was, and its result is worth nothing")
        return Result(outcome, self._output.stdout, self._output.stderr)

    def _kill(self, why: str) -> None:
        """Kill all that the command has started, and take in what it wrote until then."""
        if not self._kills:
            return
        kill(self._target, self._mark, why)
        until = time.monotonic() + _LATE
        while not self._output.ended and not self._output.too_long and time.monotonic() < until:
            try:
                for channel, data in self._stream.step(0.5):
                    self._output.feed(channel, data)
            except StreamCut:
                return
            if self._stream.closed:
                return

    def _cut(self, why: str) -> SandboxBrokenError:
        """The stream is cut; what the command did is not known, and it is not run again."""
        error = self._target.broken(f"the stream of a command was cut, so it is not known how it went: {why}")
        if self._kills and self._target.watched.problem() is None:
            try:
                kill(self._target, self._mark, "its stream was cut")
            except SandboxBrokenError as other:
                error.add_note(str(other))
        return error


def kill(target: Target, mark: str, why: str) -> None:
    """Kill all processes that have a mark.

    Raises:
        SandboxBrokenError: they may be alive.
    """
    stop = Stop()
    try:
        stream, ready = _open(target, stop, _KILLING)
        try:
            command = Command(["sh", "-c", KILL, "sh", mark])
            done = _Run(target, command, stop, stream, ready, LIMIT, kills=False).within(_KILLING)
        finally:
            stream.close()
    finally:
        stop.close()
    if done is None or done.outcome.code != 0:
        raise target.broken(f"a command was to be killed ({why}), and may be alive")


def _too_long(data: bytes) -> OutputLimitExceededError:
    return OutputLimitExceededError(f"{LIMIT // 1024**2} MiB", _text(data[:LIMIT]))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")

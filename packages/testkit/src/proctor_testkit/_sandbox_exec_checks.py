"""Checks of sandboxes: commands."""

from __future__ import annotations

import hashlib
import signal

import anyio
import pytest

from proctor.contracts import OutputLimitExceededError, SandboxEnvironment, SandboxUserUnsupportedError
from proctor_testkit._loop_turns import STOPPED, longest_stop
from proctor_testkit._sandbox_checks import TICKS, SandboxChecks
from proctor_testkit._suite import check

__all__ = ["ExecChecks"]

MIB = 1024**2
EVERY_BYTE = bytes(range(256))


class ExecChecks(SandboxChecks):
    """What a command gets, what comes back of it, and how it ends."""

    @check("sandbox.exec")
    async def test_a_command_is_run_and_its_output_kept_apart(self, box: SandboxEnvironment) -> None:
        result = await box.exec(["sh", "-c", "echo out; echo err >&2"])

        assert (result.success, result.returncode) == (True, 0)
        assert (result.stdout, result.stderr) == ("out\n", "err\n")

    @check("sandbox.arguments")
    async def test_no_shell_touches_the_arguments(self, box: SandboxEnvironment) -> None:
        words = ["two words", "$HOME", "*", "", "a'b\"c", "back\\slash", "line\nfeed", "ünïcode 語", "-n"]

        result = await box.exec(["sh", "-c", 'for each; do printf "<%s>" "$each"; done', "name", *words])

        assert result.stdout == "".join(f"<{word}>" for word in words)

    @check("sandbox.exit_codes")
    @pytest.mark.parametrize("code", [1, 2, 77, 255])
    async def test_an_exit_code_is_a_result_and_no_error(self, box: SandboxEnvironment, code: int) -> None:
        result = await box.exec(["sh", "-c", f"echo said; exit {code}"])

        assert (result.success, result.returncode, result.stdout) == (False, code, "said\n")

    @check("sandbox.signal", level="should")
    async def test_a_signal_gives_a_negative_return_code(self, box: SandboxEnvironment) -> None:
        result = await box.exec(["sh", "-c", "kill -9 $$"])

        assert (result.success, result.returncode) == (False, -signal.SIGKILL)

    @check("sandbox.stdin")
    @pytest.mark.parametrize(("given", "read"), [("ä\nb", "ä\nb"), ("語".encode(), "語"), ("", ""), (None, "")])
    async def test_input_is_what_was_given_and_nothing_by_default(
        self, box: SandboxEnvironment, given: str | bytes | None, read: str
    ) -> None:
        assert (await box.exec(["cat"], input=given, timeout=30)).stdout == read

    @check("sandbox.stdin_bytes")
    async def test_every_byte_gets_through_the_input(self, box: SandboxEnvironment) -> None:
        await self.sh(box, "cat > copy", input=EVERY_BYTE * 100)

        copy = await box.read_file("copy", text=False)
        same = copy == EVERY_BYTE * 100  # in the assertion, pytest would look for minutes at what differs
        assert same, f"{len(copy):,} bytes came back, and not those that went in"

    @check("sandbox.stdin_unread")
    async def test_a_command_need_not_read_its_input(self, box: SandboxEnvironment) -> None:
        result = await box.exec(["sh", "-c", "exec <&-; echo done"], input=b"x" * MIB, timeout=60)

        assert (result.success, result.stdout) == (True, "done\n")

    @pytest.mark.slow
    @check("sandbox.stdin_large")
    async def test_an_input_may_have_64_mib(self, box: SandboxEnvironment) -> None:
        data = EVERY_BYTE * (64 * MIB // 256)

        said = await self.sh(box, "sha256sum", input=data)

        assert said.split()[0] == hashlib.sha256(data).hexdigest()

    @check("sandbox.cwd")
    async def test_a_command_starts_where_it_is_told(self, box: SandboxEnvironment) -> None:
        home = (await box.exec(["pwd"])).stdout.strip()
        await self.sh(box, "mkdir -p 'in here/deep'")

        relative = (await box.exec(["pwd"], cwd="in here/deep")).stdout
        absolute = (await box.exec(["pwd"], cwd=f"{home}/in here")).stdout

        assert (relative, absolute) == (f"{home}/in here/deep\n", f"{home}/in here\n")

    @check("sandbox.default_directory")
    async def test_commands_and_files_start_in_one_directory(self, box: SandboxEnvironment) -> None:
        await box.write_file("written", "by write_file")
        await self.sh(box, "printf 'by a command' > made")

        assert await self.sh(box, "cat written") == "by write_file"
        assert await box.read_file("made") == "by a command"

    @check("sandbox.env")
    async def test_variables_are_added_for_one_command(self, box: SandboxEnvironment) -> None:
        told = "two words\n'and' \"more\" $HOME ü"

        said = await self.sh(box, 'printf "%s|%s" "$TOLD" "${PATH:+path}"', env={"TOLD": told})

        assert said == f"{told}|path"
        assert await self.sh(box, 'printf "%s" "${TOLD-unset}"') == "unset"

    @check("sandbox.missing_command")
    async def test_a_command_that_is_not_there_is_an_error(self, box: SandboxEnvironment) -> None:
        with pytest.raises(FileNotFoundError):
            await box.exec(["no-such-command-anywhere"])

    @check("sandbox.missing_cwd")
    async def test_a_directory_that_is_not_there_is_an_error(self, box: SandboxEnvironment) -> None:
        with pytest.raises(FileNotFoundError):
            await box.exec(["pwd"], cwd="no-such-directory")

    @check("sandbox.not_executable")
    async def test_what_may_not_be_executed_is_an_error(self, box: SandboxEnvironment) -> None:
        await box.write_file("text", "no program")
        path = await self.sh(box, 'chmod 644 text; printf "%s" "$PWD/text"')

        with pytest.raises(PermissionError):
            await box.exec([path])

    @check("sandbox.timeout")
    async def test_a_timeout_kills_the_command_and_all_its_descendants(self, box: SandboxEnvironment) -> None:
        with pytest.raises(TimeoutError):
            await box.exec(["sh", "-c", f"sh -c '{TICKS}' & sleep 600"], timeout=self.patience)

        assert not await self.still_ticks(box)

    @check("sandbox.timeout_sessions", needs="sessions")
    async def test_a_timeout_kills_what_ignores_signals_and_has_left_its_group(self, box: SandboxEnvironment) -> None:
        await box.write_file("stubborn", f"trap '' TERM HUP INT\n{TICKS}\n")
        script = "trap '' TERM HUP INT; setsid sh stubborn & while :; do sleep 0.2; done"
        with pytest.raises(TimeoutError):
            await box.exec(["sh", "-c", script], timeout=self.patience)

        assert not await self.still_ticks(box)

    @check("sandbox.timeout_output", level="should")
    async def test_a_timeout_keeps_what_was_written(self, box: SandboxEnvironment) -> None:
        with pytest.raises(TimeoutError) as raised:
            await box.exec(["sh", "-c", "echo so far; echo and wrong >&2; sleep 600"], timeout=self.patience)

        assert getattr(raised.value, "stdout", None) == "so far\n", "it is an ExecTimeoutError with what was written"
        assert getattr(raised.value, "stderr", None) == "and wrong\n"

    @check("sandbox.after_timeout")
    async def test_a_timeout_ends_one_command_and_not_the_sandbox(self, box: SandboxEnvironment) -> None:
        await box.write_file("kept", "here")
        with pytest.raises(TimeoutError):
            await box.exec(["sleep", "600"], timeout=self.patience)

        assert await self.sh(box, "cat kept", timeout=60) == "here"

    @check("sandbox.cancel")
    async def test_a_cancelled_command_is_killed(self, box: SandboxEnvironment) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(box.exec, ["sh", "-c", f"sh -c '{TICKS}' & sleep 600"])
            await self.ticking(box)
            group.cancel_scope.cancel()

        assert not await self.still_ticks(box)

    @check("sandbox.background")
    async def test_what_a_command_leaves_behind_goes_on(self, box: SandboxEnvironment) -> None:
        await self.sh(box, f"({TICKS}) > /dev/null 2>&1 &", timeout=60)
        await self.ticking(box)

        assert await self.still_ticks(box)

    @check("sandbox.unblocked")
    @pytest.mark.parametrize("call", ["exec", "write_file", "read_file"])
    async def test_the_event_loop_goes_on_during_a_call(self, box: SandboxEnvironment, call: str) -> None:
        data = EVERY_BYTE * (4 * MIB // 256)
        await box.write_file("awaited", data)  # what is made once may take its time

        async def once() -> None:
            if call == "exec":
                await box.exec(["sleep", "0.3"])
            elif call == "write_file":
                await box.write_file("awaited", data)
            else:
                await box.read_file("awaited", text=False)

        stops = [await longest_stop(once) for _ in range(4)]

        # A machine that is busy stops a loop now and then; a call that blocks does so each time.
        assert min(stops) < STOPPED, (
            f"the event loop stood still in every {call}, and with it all other samples: what blocks (a synchronous "
            "client, subprocess.run, open() of what is slow) belongs in anyio.to_thread.run_sync"
        )

    @check("sandbox.output_text")
    async def test_characters_of_several_bytes_stay_whole(self, box: SandboxEnvironment) -> None:
        await box.write_file("text", "a語é😀" * 100_000)

        assert (await box.exec(["cat", "text"])).stdout == "a語é😀" * 100_000

    @check("sandbox.output_not_text")
    async def test_output_that_is_no_text_is_replaced_or_an_error(self, box: SandboxEnvironment) -> None:
        try:
            said = (await box.exec(["printf", r"a\377b"])).stdout
        except UnicodeDecodeError:
            return
        assert said == "a\N{REPLACEMENT CHARACTER}b"

    @check("sandbox.output_large")
    async def test_10_mib_of_output_are_taken_in(self, box: SandboxEnvironment) -> None:
        result = await box.exec(["sh", "-c", f"head -c {10 * MIB} /dev/zero | tr '\\0' x"])

        assert len(result.stdout) == 10 * MIB

    @check("sandbox.output_limit")
    @pytest.mark.parametrize("stream", ["1", "2"])
    async def test_more_output_is_an_error_that_holds_its_beginning(self, box: SandboxEnvironment, stream: str) -> None:
        script = f"(echo first; head -c {12 * MIB} /dev/zero | tr '\\0' x) >&{stream}"

        with pytest.raises(OutputLimitExceededError) as raised:
            await box.exec(["sh", "-c", script])

        assert raised.value.limit_str == "10 MiB"
        assert (raised.value.truncated_output or "").startswith("first\nxxx")

    @check("sandbox.user_unsupported")
    async def test_a_user_that_there_is_not_is_an_error(self, box: SandboxEnvironment) -> None:
        with pytest.raises(SandboxUserUnsupportedError):
            await box.exec(["id"], user="nobody-of-this-name")

    @check("sandbox.users", needs="users")
    async def test_a_command_runs_as_the_user_it_was_told(self, box: SandboxEnvironment) -> None:
        for name in ("root", "nobody"):
            assert (await box.exec(["id", "-un"], user=name)).stdout.strip() == name

"""Checks of sandboxes: files."""

from __future__ import annotations

import hashlib

import pytest

from proctor.contracts import OutputLimitExceededError, SandboxEnvironment
from proctor_testkit._sandbox_checks import SandboxChecks
from proctor_testkit._sandbox_exec_checks import EVERY_BYTE, MIB
from proctor_testkit._suite import check

__all__ = ["FileChecks"]

NAMES = ("two words", "a'b\"c", "$HOME", "-rf", "back\\slash", "ünïcode 語", "star*", ".hidden", "a;b|c&d")


class FileChecks(SandboxChecks):
    """Files come back as they were written, and the errors are those of the contract."""

    @check("sandbox.files")
    async def test_a_file_is_replaced_as_a_whole(self, box: SandboxEnvironment) -> None:
        for contents in ("a long first text", "short", ""):
            await box.write_file("file", contents)

            assert await box.read_file("file") == contents

    @check("sandbox.every_byte")
    async def test_every_byte_comes_back(self, box: SandboxEnvironment) -> None:
        await box.write_file("bytes", EVERY_BYTE)

        assert await box.read_file("bytes", text=False) == EVERY_BYTE
        assert int(await self.sh(box, "wc -c < bytes")) == 256

    @check("sandbox.newlines")
    async def test_text_keeps_its_line_ends(self, box: SandboxEnvironment) -> None:
        await box.write_file("lines", "a\r\nb\nc\rd\n")

        assert await box.read_file("lines") == "a\r\nb\nc\rd\n"
        assert await box.read_file("lines", text=False) == b"a\r\nb\nc\rd\n"

    @check("sandbox.parents")
    async def test_the_directories_of_a_file_are_made(self, box: SandboxEnvironment) -> None:
        await box.write_file("some/where/deep/file", "there")

        assert await self.sh(box, "cat some/where/deep/file") == "there"

    @check("sandbox.names")
    @pytest.mark.parametrize("name", NAMES)
    async def test_a_name_is_a_name_whatever_is_in_it(self, box: SandboxEnvironment, name: str) -> None:
        await box.write_file(f"folder/{name}", name)

        assert await box.read_file(f"folder/{name}") == name
        assert (await box.exec(["cat", f"./folder/{name}"])).stdout == name

    @check("sandbox.absolute")
    async def test_a_path_may_be_absolute(self, box: SandboxEnvironment) -> None:
        home = (await box.exec(["pwd"])).stdout.strip()

        await box.write_file(f"{home}/absolute", "here")

        assert await box.read_file("absolute") == "here"
        assert await box.read_file(f"{home}/absolute") == "here"

    @check("sandbox.missing_file")
    @pytest.mark.parametrize("path", ["no-such-file", "no/such/folder/file"])
    async def test_a_file_that_is_not_there_is_an_error(self, box: SandboxEnvironment, path: str) -> None:
        with pytest.raises(FileNotFoundError):
            await box.read_file(path)

    @check("sandbox.directory")
    async def test_a_directory_is_no_file(self, box: SandboxEnvironment) -> None:
        await self.sh(box, "mkdir folder")

        with pytest.raises(IsADirectoryError):
            await box.read_file("folder")
        with pytest.raises(IsADirectoryError):
            await box.write_file("folder", "x")

    @check("sandbox.not_text")
    async def test_a_file_that_is_no_text_is_an_error_as_text(self, box: SandboxEnvironment) -> None:
        await box.write_file("bytes", b"\xff\xfe")

        with pytest.raises(UnicodeDecodeError):
            await box.read_file("bytes")

    @check("sandbox.unreadable")
    async def test_a_file_that_may_not_be_read_is_an_error(self, box: SandboxEnvironment) -> None:
        path = await self._forbidden(box, "000", "/proc/sys/vm/drop_caches")

        with pytest.raises(PermissionError):
            await box.read_file(path)

    @check("sandbox.unwritable")
    async def test_a_file_that_may_not_be_written_is_an_error(self, box: SandboxEnvironment) -> None:
        path = await self._forbidden(box, "444", "/proc/sys/kernel/ostype")

        with pytest.raises(PermissionError):
            await box.write_file(path, "x")

    async def _forbidden(self, box: SandboxEnvironment, mode: str, for_root: str) -> str:
        """A file that is forbidden; the mode of a file says nothing to root, so for it one of Linux's own."""
        if (await self.sh(box, "id -u")).strip() == "0":
            return for_root
        await self.sh(box, f"echo secret > forbidden; chmod {mode} forbidden")
        return "forbidden"

    @check("sandbox.file_mode")
    async def test_a_file_that_is_written_anew_stays_executable(self, box: SandboxEnvironment) -> None:
        await box.write_file("script", "#!/bin/sh\necho first\n")
        await self.sh(box, "chmod +x script")

        await box.write_file("script", "#!/bin/sh\necho second\n")

        assert await self.sh(box, "./script") == "second\n"

    @pytest.mark.slow
    @check("sandbox.file_large")
    async def test_a_file_may_have_100_mib(self, box: SandboxEnvironment) -> None:
        data = EVERY_BYTE * (100 * MIB // 256)

        await box.write_file("large", data)

        digest = hashlib.sha256(data).hexdigest()
        assert (await self.sh(box, "sha256sum < large")).split()[0] == digest
        assert hashlib.sha256(await box.read_file("large", text=False)).hexdigest() == digest

    @pytest.mark.slow
    @check("sandbox.file_limit")
    async def test_a_larger_file_is_an_error(self, box: SandboxEnvironment) -> None:
        await self.sh(box, f"head -c {100 * MIB + 1} /dev/zero > large")

        with pytest.raises(OutputLimitExceededError) as raised:
            await box.read_file("large", text=False)

        assert raised.value.limit_str == "100 MiB"

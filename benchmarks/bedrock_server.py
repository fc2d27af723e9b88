"""The Bedrock of the benchmark: the test-kit's fake in a process of its own, 100 ms an answer. Prints its address."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from proctor_testkit import FakeBedrock


async def answer(body: dict[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(float(sys.argv[1]) / 1000)
    return FakeBedrock.answer("The answer is 4.")


def main() -> None:
    with FakeBedrock() as server:
        server.reply(answer)
        print(server.base_url, flush=True)
        sys.stdin.read()  # until whoever asked for it has enough
        print(server.peak, len(server.requests), flush=True)


if __name__ == "__main__":
    main()

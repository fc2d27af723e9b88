"""The reference of the HTTP benchmark: the same requests with aiohttp and nothing around them. Prints seconds."""

from __future__ import annotations

import asyncio
import sys
import time

import aiohttp


async def ask(url: str, requests: int, connections: int) -> float:
    todo = iter(range(requests))

    async def worker(session: aiohttp.ClientSession) -> None:
        for variant in todo:
            message = {"role": "user", "content": f"What is 2 + 2? (variant {variant})"}
            body = {"model": "gpt-4o-mini", "messages": [message]}
            async with session.post(f"{url}/chat/completions", json=body) as response:
                reply = await response.json()
                assert reply["choices"][0]["message"]["content"]

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections)) as session:
        start = time.perf_counter()
        await asyncio.gather(*(worker(session) for _ in range(connections)))
        return time.perf_counter() - start


if __name__ == "__main__":
    print(asyncio.run(ask(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))

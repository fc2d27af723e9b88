"""The reference of the Docker benchmark: the same containers and commands by the SDK in a pool of threads.

Prints seconds.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import docker


def work(image: str, samples: int, commands: int, at_once: int) -> float:
    client = docker.from_env(version="auto", timeout=120, max_pool_size=at_once)

    def one(number: int) -> None:
        container = client.containers.run(
            image, ["sleep", "600"], detach=True, init=True, network_mode="none", name=f"bare-{time.time_ns()}-{number}"
        )
        try:
            for _ in range(commands):
                code, output = container.exec_run(["sh", "-c", f"echo {number}"], demux=True)
                assert (code, output[0]) == (0, f"{number}\n".encode())
        finally:
            container.remove(force=True)

    with ThreadPoolExecutor(at_once) as pool:
        start = time.perf_counter()
        list(pool.map(one, range(samples)))
        return time.perf_counter() - start


if __name__ == "__main__":
    print(work(sys.argv[1], *map(int, sys.argv[2:])))

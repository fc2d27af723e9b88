"""The reference of the Bedrock benchmark: the same requests by boto3 in a pool of threads. Prints seconds."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import boto3
from botocore.config import Config


def ask(url: str, requests: int, connections: int) -> float:
    config = Config(max_pool_connections=connections, retries={"total_max_attempts": 1})
    client = boto3.client("bedrock-runtime", region_name="us-east-1", endpoint_url=url, config=config)

    def one(variant: int) -> None:
        message = {"role": "user", "content": [{"text": f"What is 2 + 2? (variant {variant})"}]}
        reply = client.converse(modelId="us.amazon.nova-lite-v1:0", messages=[message])
        assert reply["output"]["message"]["content"][0]["text"]

    with ThreadPoolExecutor(connections) as pool:
        start = time.perf_counter()
        list(pool.map(one, range(requests)))
        return time.perf_counter() - start


if __name__ == "__main__":
    print(ask(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))

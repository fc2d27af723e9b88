"""Reading and writing a log of 2,000 samples, beside its zip and JSON alone."""

from __future__ import annotations

import sys
from pathlib import Path

from bench_support import Figure, at_most, environment, evaluate, folder, main, peer_python, reference, run, the_log

SAMPLES = 2000
# Each runs in a process of its own and prints its seconds; imports are not counted.
WHOLE = """
from {room} import read_eval_log
start = perf_counter(); log = read_eval_log(path); print(perf_counter() - start)
assert len(log.samples) == {samples}
"""
ONE_BY_ONE = """
from {room} import read_eval_log_samples
start = perf_counter(); n = sum(1 for _ in read_eval_log_samples(path)); print(perf_counter() - start)
assert n == {samples}
"""
HEADER = """
from proctor.log import read_eval_log
start = perf_counter(); read_eval_log(path, header_only=True); print(perf_counter() - start)
"""
WRITE = """
from {room} import read_eval_log, write_eval_log
log = read_eval_log(path)
start = perf_counter(); write_eval_log(log, path + '.copy.eval'); print(perf_counter() - start)
"""
REFERENCE = """
import json, struct, zipfile, zstandard
start = perf_counter()
n = 0
with zipfile.ZipFile(path) as archive, open(path, 'rb') as file:
    for info in archive.infolist():
        file.seek(info.header_offset + 26)
        name, extra = struct.unpack('<HH', file.read(4))
        file.seek(name + extra, 1)
        data = file.read(info.compress_size)
        if info.compress_type == 93:
            data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
        n += bool(json.loads(data)) and info.filename.startswith('samples/')
print(perf_counter() - start)
assert n == {samples}
"""


def _time(program: str, log: Path, python: str = sys.executable, room: str = "proctor.log") -> tuple[float, float]:
    head = "import sys\nfrom time import perf_counter\npath = sys.argv[1]\n"
    code = head + program.replace("{room}", room).replace("{samples}", str(SAMPLES))
    runs = [run([python, "-c", code, str(log)], env=environment()) for _ in range(3)]
    return min((float(done.out.split()[-1]), done.peak) for done in runs)


def _peer(log: Path) -> list[Figure]:
    python = peer_python()
    if python is None:
        return []
    figures = []
    for name, program in (("read whole", WHOLE), ("read one by one", ONE_BY_ONE), ("write", WRITE)):
        seconds, peak = _time(program, log, python, "inspect_ai.log")
        figures += [
            reference(f"logs: {name}, peer", seconds, "s"),
            reference(f"logs: {name}, peer, memory", peak, "MB"),
        ]
    return figures


def measure() -> list[Figure]:
    with folder() as logs:
        evaluate(logs, "--model", "mock/model", "-T", f"samples={SAMPLES}")
        log = the_log(logs)
        bare, _ = _time(REFERENCE, log)
        whole, _ = _time(WHOLE, log)
        single, peak = _time(ONE_BY_ONE, log)
        header, _ = _time(HEADER, log)
        write, _ = _time(WRITE, log)
        peer = _peer(log)
        size = log.stat().st_size / SAMPLES / 1000
    return [
        reference("logs: zip and JSON alone", bare, "s"),
        reference("logs: size per sample", size, "KB"),
        at_most("logs: read whole", whole, "s", 0.6),
        at_most("logs: read one by one", single, "s", 1.0),
        at_most("logs: read one by one, memory", peak, "MB", 60),
        at_most("logs: read the header", header, "s", 0.3),
        at_most("logs: write from memory", write, "s", 0.5),
        *peer,
    ]


if __name__ == "__main__":
    main(measure)

"""Resuming a log of 200,000 samples: how long until the first request, and how much memory."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from bench_support import HERE, PROCTOR, Figure, at_most, environment, folder, main, reference, run

SAMPLES = 200_000
LEFT = 200  # samples that are not done
TASK = HERE / "tasks" / "resumable.py"
# The log as a run leaves it that was stopped (or, when `finish` is 0, that died): a few real samples under all ids.
MAKE = """
import os, sys, time
from proctor.log import LogWriter, read_eval_log
small, folder, count, finish = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1"
log = read_eval_log(small)
spec = log.eval.model_copy(update={"config": log.eval.config.model_copy(update={"limit": None})})
spec.dataset.sample_ids = None
writer = LogWriter.open(folder, spec, log.plan)
for number in range(count):
    writer.write(log.samples[number % len(log.samples)].model_copy(update={"id": number + 1}))
    while writer.backlog > 500:
        time.sleep(0.005)
while writer.backlog:
    time.sleep(0.05)
if finish:
    writer.finish("cancelled", None, log.stats)
else:
    time.sleep(1)
    os._exit(0)
"""


def _questions(file: Path) -> None:
    with file.open("w") as out:
        for number in range(1, SAMPLES + 1):
            question = {"id": number, "input": f"What is 2 + 2? (variant {number})", "target": "4"}
            out.write(json.dumps(question) + "\n")


def _measured(place: Path, log: Path, name: str) -> list[Figure]:
    new, mark = place / f"new-{name.replace(' ', '-')}", place / "mark"
    mark.unlink(missing_ok=True)
    started = time.time()
    command = [PROCTOR, "eval-retry", str(log), "--display", "none", "--log-dir", str(new)]
    done = run(command, env=environment(RESUME_MARK=str(mark)))
    first = float(mark.read_text()) - started
    [made] = new.glob("*.eval")
    what = f"resume: {SAMPLES:,} samples, {name}"
    return [
        at_most(f"{what}, first request", first, "s", 10),
        at_most(f"{what}, memory", done.peak, "MB", 500),
        at_most(f"{what}, size of the new log", made.stat().st_size / log.stat().st_size, "x", 1.1),
        reference(f"{what}, until the new log is whole", done.wall, "s"),
    ]


def measure() -> list[Figure]:
    figures = []
    with folder() as place:
        _questions(place / "questions.jsonl")
        small = ["--display", "none", "--log-dir", str(place / "small"), "--limit", "50", "--model", "mock/model"]
        words = [PROCTOR, "eval", str(TASK), "-T", f"file={place / 'questions.jsonl'}", *small]
        run(words, env=environment(RESUME_MARK=str(place / "mark")))
        [log] = (place / "small").glob("*.eval")
        for name, finish in (("a stopped run", "1"), ("a dead run", "0")):
            logs = place / f"logs-{finish}"
            run([sys.executable, "-c", MAKE, str(log), str(logs), str(SAMPLES - LEFT), finish])
            [made] = logs.glob("*.eval")
            figures += _measured(place, made, name)
    return figures


if __name__ == "__main__":
    main(measure)

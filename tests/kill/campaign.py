"""Many seeded kills, one line each: ``python campaign.py [COUNT] [FIRST_SEED] [--s3]``, or ``nox -s kill``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from kill_outcome import Judge, Outcome
from kill_places import ObjectStore
from kill_plan import plan_of
from kill_server import CountingServer


def main() -> int:
    """Play the seeds; 0 when all held."""
    parser = argparse.ArgumentParser(prog="kill")
    parser.add_argument("count", nargs="?", type=int, default=50, help="evaluations that are killed")
    parser.add_argument("first", nargs="?", type=int, default=0, help="seed of the first")
    parser.add_argument("--s3", action="store_true", help="logs in an object store behind a proxy that breaks things")
    parser.add_argument("--keep", metavar="DIR", help="an empty folder where logs and outputs stay")
    given = parser.parse_args()
    if given.keep and os.path.exists(given.keep) and os.listdir(given.keep):
        parser.error(f"{given.keep} is not empty")
    outcomes: list[Outcome] = []
    with ExitStack() as stack:
        folder = Path(given.keep or stack.enter_context(tempfile.TemporaryDirectory()))
        store = stack.enter_context(ObjectStore()) if given.s3 else None
        judge = Judge(folder, stack.enter_context(CountingServer()))
        for seed in range(given.first, given.first + given.count):
            plan = plan_of(seed, remote=given.s3)
            outcomes.append(judge.play(plan, store.bucket(seed) if store is not None else None))
            print(outcomes[-1], flush=True)
    kills, resumes = sum(len(one.kept) for one in outcomes), sum(len(one.kept) > 1 for one in outcomes)
    bad = [one for one in outcomes if one.faults]
    print(f"{len(outcomes)} evaluations, {kills} kills, {resumes} evaluations killed again while they were resumed")
    print(f"lost: {sum(one.lost for one in outcomes)}, asked for again: {sum(one.again for one in outcomes)}")
    print(f"largest log: {max(one.size for one in outcomes):.2f}x that of a run that was left alone")
    print(f"{len(bad)} with faults" + (f": seeds {', '.join(str(one.plan.seed) for one in bad)}" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

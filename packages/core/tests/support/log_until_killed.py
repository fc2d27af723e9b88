"""Writes samples without end and says on standard output which were acknowledged: for tests that kill it.

Arguments: the folder of the log, its format.
"""

from __future__ import annotations

import sys
import time

from log_samples import sample, spec

from proctor.log import LogWriter
from proctor.schema import EvalPlan


def main() -> None:
    """Write until killed."""
    folder, format = sys.argv[1:]
    many = spec(1)
    many.dataset.sample_ids = None
    writer = LogWriter.open(folder, many, EvalPlan(), format="json" if format == "json" else "eval")
    print(writer.location, flush=True)
    number = 0
    while True:
        number += 1
        writer.write(sample(number), on_ack=lambda row: print(row["id"], flush=True))
        while writer.backlog > 50:
            time.sleep(0.001)


main()

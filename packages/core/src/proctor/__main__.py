"""The command ``proctor`` and ``python -m proctor``."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line of this process and return its exit code."""
    _open_streams()
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Scripts ask for the version before each run: it is said before click, which costs more than the rest.
        from proctor import __version__

        sys.stdout.write(f"proctor {__version__}\n")
        return 0
    from proctor.cli import main as run

    code = run(sys.argv[1:])
    concurrency = sys.modules.get("proctor.concurrency")
    if concurrency is not None and concurrency.left_behind():
        # The interpreter would wait for the threads of what was given up.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _open_streams() -> None:
    """Let closed standard streams (``>&-``, as daemons have them) lead nowhere.

    What is opened next would get their numbers, and be taken for them.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            if getattr(sys, name) is None:
                setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


if __name__ == "__main__":
    sys.exit(main())

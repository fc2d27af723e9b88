"""The command ``proctor`` and ``python -m proctor``."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line of this process and return its exit code."""
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


if __name__ == "__main__":
    sys.exit(main())

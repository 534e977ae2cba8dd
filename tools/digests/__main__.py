"""The command: ``python -m tools.digests --help``."""

from __future__ import annotations

import os
import sys

# Float sums of the calibration must not depend on the processor. This instruction set is available on all of them.
os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if __name__ == "__main__":
    from tools.digests.command import main

    sys.exit(main(sys.argv[1:]))

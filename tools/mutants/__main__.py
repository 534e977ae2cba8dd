"""The command: ``python -m tools.mutants --help``."""

from __future__ import annotations

import sys

from tools.mutants.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The command: ``python -m tools.figures --help``."""

import sys

if __name__ == "__main__":
    from tools.figures.command import main

    sys.exit(main(sys.argv[1:]))

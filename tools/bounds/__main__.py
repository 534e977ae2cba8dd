"""The command: ``python -m tools.bounds --help``."""

import sys

if __name__ == "__main__":
    from tools.bounds.command import main

    sys.exit(main(sys.argv[1:]))

"""The command: ``python -m tools.networks --help``."""

import sys

if __name__ == "__main__":
    from tools.networks.command import main

    sys.exit(main(sys.argv[1:]))
